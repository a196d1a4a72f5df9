/** B18: one tool call through its machine, from the call block to the result, as one of many calls of a message. */
import { channel, defineGraph, defineState, defineTool, END, type Message, run, START, toolNode } from "statewright";
import * as z from "zod";
import { type Case, type Contender, listDoublings } from "../case.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";

const input = z.object({ city: z.string() });
const description = "Current weather for a city.";
const describeWeather = async ({ city }: z.infer<typeof input>): Promise<string> => `It is raining in ${city}.`;
const weather = defineTool({ name: "weather", description, input, effect: "pure", run: describeWeather });

const toolGraph = defineGraph({ name: "answer-calls", state: defineState({ messages: channel.messages() }) })
  .nodes({ tools: toolNode({ tools: [weather] }) })
  .edges({ [START]: "tools", tools: END });

export function createToolCallCase({ langgraph }: Peers): Case {
  return {
    id: "B18",
    title: "complete in-process tool call through its machine",
    unit: "call",
    budget: { cpuUs: 40, text: "40 µs" },
    size: 500,
    contenders: [
      {
        name: "statewright",
        role: "ours",
        growth: listDoublings(250),
        open: () => ({
          run: async (size) => {
            await run(toolGraph, { input: { messages: createCallMessages(size) } }).result;
            return undefined;
          },
        }),
      },
      ...(langgraph === undefined ? [] : [createPeerContender(langgraph)]),
      { name: "schema and function of the tool", role: "limit", open: () => ({ run: runBareCalls }) },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.5 }],
  };
}

function createCallMessages(calls: number): Message[] {
  const content = Array.from({ length: calls }, (_, index) => ({
    type: "call" as const,
    id: `call-${index}`,
    name: "weather",
    args: { city: "Oslo" },
  }));
  return [{ role: "assistant", id: "asking", finish: "calls", content }];
}

async function runBareCalls(size: number): Promise<undefined> {
  await Promise.all(Array.from({ length: size }, async () => describeWeather(input.parse({ city: "Oslo" }))));
}

function createPeerContender({ StateGraph, MessagesAnnotation, ToolNode, AIMessage, tool }: LangGraph): Contender {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode("tools", new ToolNode([tool(describeWeather as never, { name: "weather", description, schema: input })]))
    .addEdge("__start__", "tools")
    .addEdge("tools", "__end__")
    .compile();
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: listDoublings(250),
    open: () => ({
      run: async (size) => {
        const calls = Array.from({ length: size }, (_, index) => ({
          id: `call-${index}`,
          name: "weather",
          args: { city: "Oslo" },
        }));
        await graph.invoke({ messages: [new AIMessage({ content: "", tool_calls: calls })] });
        return undefined;
      },
    }),
  };
}
