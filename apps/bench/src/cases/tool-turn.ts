/** B6: bytes on disk of one turn with ten parallel tool calls, after a history of 100 KB. */
import { createAgent, defineTool, type Message, type ModelReply, sqliteStore } from "statewright";
import * as z from "zod";
import { type Case, type Contender, listDoublings, type Work } from "../case.ts";
import { measureTime } from "../measure.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import { createScratchFile } from "../scratch-files.ts";

const text = "h".repeat(1_000);
const calls = Array.from({ length: 10 }, (_, nth) => ({ id: `call-${nth}`, name: "lookup", args: { nth } }));
const input = z.object({ nth: z.number() });
const description = "Look something up.";

export function createToolTurnCase({ langgraph }: Peers): Case {
  return {
    id: "B6",
    title: "one agent turn of 10 parallel tool calls after a history of 100 KB, saved",
    unit: "turn",
    budget: { cpuUs: 3_000, text: "0.12 MB on disk" },
    disk: true,
    size: 100,
    sizeKind: "data",
    contenders: [
      { name: "statewright", role: "ours", growth: listDoublings(50), open: openStatewright },
      ...(langgraph === undefined ? [] : [createPeerContender(langgraph)]),
      { name: "messages of the turn as JSON, serialized once", role: "limit", open: openJsonWork },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "bytes", max: 0.1 }],
  };
}

function openStatewright(): Work {
  const lookup = defineTool({ name: "lookup", description, input, effect: "pure", run: ({ nth }) => `found ${nth}` });
  const respond = async ({ messages }: { readonly messages: readonly Message[] }): Promise<ModelReply> =>
    messages.at(-1)?.role === "user"
      ? { content: calls.map((call) => ({ type: "call", ...call })), finish: "calls" }
      : { content: [{ type: "text", text: "Done." }], finish: "stop" };
  const scriptedModel = { id: "scripted", respond };
  const createUserMessage = (nth: number): Message => ({
    role: "user",
    id: `u${nth}`,
    content: [{ type: "text", text }],
  });
  let bytes = 0;
  return {
    run: async (historyLength) => {
      const history = Array.from({ length: historyLength }, (_, nth) => createUserMessage(nth));
      const file = createScratchFile("ours.db");
      const open = () => sqliteStore(file.path, { durability: "normal" });
      let store = open();
      const historyAgent = createAgent({
        name: "assistant",
        model: { ...scriptedModel, respond: async () => finalReply },
        tools: [lookup],
      });
      await historyAgent.run({ store, thread: "t", input: history }).result;
      await store.close();
      const historyBytes = file.countBytes();
      store = open();
      const agent = createAgent({ name: "assistant", model: scriptedModel, tools: [lookup] });
      const sample = await measureTime(() => agent.run({ store, thread: "t", input: "Look ten things up." }).result);
      await store.close();
      bytes = file.countBytes() - historyBytes;
      file.remove();
      return sample;
    },
    getBytes: () => bytes,
  };
}

/** Serializes the input, the calls, the results and the final text as JSON, as the lower bound of the bytes. */
function openJsonWork(): Work {
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
    getBytes: () => bytes,
  };
}

const finalReply: ModelReply = { content: [{ type: "text", text: "Done." }], finish: "stop" };

function createPeerContender({
  StateGraph,
  MessagesAnnotation,
  ToolNode,
  AIMessage,
  HumanMessage,
  SqliteSaver,
  tool,
}: LangGraph): Contender {
  type PeerState = { readonly messages: readonly { readonly tool_calls?: readonly unknown[] }[] };
  const lookup = tool(({ nth }: { readonly nth: number }) => `found ${nth}`, {
    name: "lookup",
    description,
    schema: input,
  });
  const routeToolCalls = ({ messages }: PeerState): string =>
    (messages.at(-1)?.tool_calls?.length ?? 0) > 0 ? "tools" : "__end__";
  const config = { durability: "sync", configurable: { thread_id: "t" } };
  let bytes = 0;
  const run: Work["run"] = async (historyLength) => {
    const file = createScratchFile("theirs.db");
    const open = (toolCalls: readonly unknown[]) => {
      const saver = SqliteSaver.fromConnString(file.path);
      const callModel = async ({
        messages,
      }: {
        readonly messages: readonly { getType(): string }[];
      }): Promise<object> => ({
        messages: [
          new AIMessage(
            toolCalls.length > 0 && messages.at(-1)?.getType() === "human"
              ? { content: "", tool_calls: toolCalls }
              : { content: "Done." },
          ),
        ],
      });
      const graph = new StateGraph(MessagesAnnotation)
        .addNode("model", callModel)
        .addNode("tools", new ToolNode([lookup]))
        .addEdge("__start__", "model")
        .addConditionalEdges("model", routeToolCalls, ["tools", "__end__"])
        .addEdge("tools", "model")
        .compile({ checkpointer: saver });
      return { saver, graph };
    };
    const first = open([]);
    await first.graph.invoke({ messages: Array.from({ length: historyLength }, () => new HumanMessage(text)) }, config);
    first.saver.db.close();
    const historyBytes = file.countBytes();
    const { saver, graph } = open(calls);
    const sample = await measureTime(() =>
      graph.invoke({ messages: [new HumanMessage("Look ten things up.")] }, config),
    );
    saver.db.close();
    bytes = file.countBytes() - historyBytes;
    file.remove();
    return sample;
  };
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: listDoublings(50),
    open: () => ({ run, getBytes: () => bytes }),
  };
}
