/** B6: what one turn with ten tool calls side by side leaves on disk, on a history of 100 KB. */
import { createAgent, defineTool, type Message, type ModelReply, sqliteStore } from "statewright";
import * as z from "zod";
import { type Case, type Contender, doublings, type Work } from "../case.ts";
import { timed } from "../measure.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import { scratchFile } from "../scratch-files.ts";

const text = "h".repeat(1_000);
const calls = Array.from({ length: 10 }, (_, nth) => ({ id: `call-${nth}`, name: "lookup", args: { nth } }));
const input = z.object({ nth: z.number() });
const description = "Look something up.";

export function toolTurn({ langgraph }: Peers): Case {
  return {
    id: "B6",
    title: "one agent turn of 10 parallel tool calls on a history of 100 KB, saved",
    unit: "turn",
    budget: { cpuUs: 3_000, text: "0.12 MB on disk" },
    disk: true,
    size: 100,
    sizeOf: "data",
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(50), open: ours },
      ...(langgraph === undefined ? [] : [theirs(langgraph)]),
      { name: "the messages of the turn as JSON, once", role: "limit", open: asJson },
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "bytes", atMost: 0.1 }],
  };
}

function ours(): Work {
  const lookup = defineTool({ name: "lookup", description, input, effect: "pure", run: ({ nth }) => `found ${nth}` });
  const respond = async ({ messages }: { readonly messages: readonly Message[] }): Promise<ModelReply> =>
    messages.at(-1)?.role === "user"
      ? { content: calls.map((call) => ({ type: "call", ...call })), finish: "calls" }
      : { content: [{ type: "text", text: "Done." }], finish: "stop" };
  const said = { id: "scripted", respond };
  const user = (nth: number): Message => ({ role: "user", id: `u${nth}`, content: [{ type: "text", text }] });
  let bytes = 0;
  return {
    run: async (messagesBefore) => {
      const history = Array.from({ length: messagesBefore }, (_, nth) => user(nth));
      const file = scratchFile("ours.db");
      const open = () => sqliteStore(file.path, { durability: "normal" });
      let store = open();
      const quiet = createAgent({ name: "assistant", model: { ...said, respond: async () => done }, tools: [lookup] });
      await quiet.run({ store, thread: "t", input: history }).result;
      store.close();
      const before = file.bytes();
      store = open();
      const agent = createAgent({ name: "assistant", model: said, tools: [lookup] });
      const sample = await timed(() => agent.run({ store, thread: "t", input: "Look ten things up." }).result);
      store.close();
      bytes = file.bytes() - before;
      file.remove();
      return sample;
    },
    bytes: () => bytes,
  };
}

/** What was asked, the calls, their answers and the end, as the smallest text that holds them. */
function asJson(): Work {
  let bytes = 0;
  const turn = [
    "Look ten things up.",
    calls,
    calls.map(({ id }, nth) => ({ callId: id, text: `found ${nth}` })),
    "Done.",
  ];
  return {
    run: () => {
      bytes = JSON.stringify(turn).length;
      return undefined;
    },
    bytes: () => bytes,
  };
}

const done: ModelReply = { content: [{ type: "text", text: "Done." }], finish: "stop" };

function theirs({
  StateGraph,
  MessagesAnnotation,
  ToolNode,
  AIMessage,
  HumanMessage,
  SqliteSaver,
  tool,
}: LangGraph): Contender {
  type Seen = { readonly messages: readonly { readonly tool_calls?: readonly unknown[] }[] };
  const lookup = tool(({ nth }: { readonly nth: number }) => `found ${nth}`, {
    name: "lookup",
    description,
    schema: input,
  });
  const callsTool = ({ messages }: Seen): string =>
    (messages.at(-1)?.tool_calls?.length ?? 0) > 0 ? "tools" : "__end__";
  const config = { durability: "sync", configurable: { thread_id: "t" } };
  let bytes = 0;
  const run: Work["run"] = async (messagesBefore) => {
    const file = scratchFile("theirs.db");
    const open = (calling: boolean) => {
      const saver = SqliteSaver.fromConnString(file.path);
      const model = async ({ messages }: { readonly messages: readonly { getType(): string }[] }): Promise<object> => ({
        messages: [
          new AIMessage(
            calling && messages.at(-1)?.getType() === "human"
              ? { content: "", tool_calls: calls }
              : { content: "Done." },
          ),
        ],
      });
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("model", model)
        .addNode("tools", new ToolNode([lookup]))
        .addEdge("__start__", "model")
        .addConditionalEdges("model", callsTool, ["tools", "__end__"])
        .addEdge("tools", "model")
        .compile({ checkpointer: saver });
      return { saver, graph };
    };
    const first = open(false);
    await first.graph.invoke(
      { messages: Array.from({ length: messagesBefore }, () => new HumanMessage(text)) },
      config,
    );
    first.saver.db.close();
    const before = file.bytes();
    const { saver, graph } = open(true);
    const sample = await timed(() => graph.invoke({ messages: [new HumanMessage("Look ten things up.")] }, config));
    saver.db.close();
    bytes = file.bytes() - before;
    file.remove();
    return sample;
  };
  return { name: "LangGraph.js", role: "peer", growth: doublings(50), open: () => ({ run, bytes: () => bytes }) };
}
