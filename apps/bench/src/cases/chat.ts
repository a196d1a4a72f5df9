/** B4 and B5: what a chat leaves on disk, plain and with a tool call in each turn; every turn is a run of its own. */
import { createAgent, defineTool, type Message, type ModelReply, sqliteStore } from "statewright";
import * as z from "zod";
import { type Case, type Contender, doublings, type Work } from "../case.ts";
import type { LangGraph, PeerGraph, Peers } from "../peers/langgraph.ts";
import { type ScratchFile, scratchFile } from "../scratch-files.ts";

type Kind = "plain" | "tools";

// With 200 turns these come to a state of 278 KB, with a tool call a turn to 689 KB.
const asked = "q".repeat(330);
const said = "a".repeat(1_000);
const found = "f".repeat(1_850);

const input = z.object({ query: z.string() });
const description = "Look something up.";

export function chat(kind: Kind, { langgraph }: Peers): Case {
  const tools = kind === "tools";
  return {
    id: tools ? "B5" : "B4",
    title: tools ? "a chat of 200 turns with one tool call each, saved" : "a chat of 200 turns, saved",
    unit: "chat of 200 turns",
    budget: tools
      ? { cpuUs: 200 * 400, text: "2 MB on disk (state 689 KB)" }
      : { cpuUs: 200 * 250, text: "0.8 MB on disk (state 278 KB)" },
    disk: true,
    size: 200,
    sizeOf: "data",
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(50), open: () => ours(kind) },
      ...(langgraph === undefined ? [] : [theirs(langgraph, kind)]),
      { name: "the messages as JSON, once", role: "limit", open: () => asJson(kind) },
    ],
    checks: [
      { of: "statewright", to: "LangGraph.js", measure: "bytes", atMost: 0.02 },
      { of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.2 },
    ],
  };
}

/** Each round is a chat in a file of its own. */
function inFiles(name: string, talk: (path: string, turns: number) => Promise<void>): Work {
  let bytes = 0;
  const one = async (turns: number): Promise<undefined> => {
    const file: ScratchFile = scratchFile(name);
    await talk(file.path, turns);
    bytes = file.bytes();
    file.remove();
  };
  return { run: one, bytes: () => bytes };
}

/** What the chat comes to, as the smallest text that holds it. */
function asJson(kind: Kind): Work {
  let bytes = 0;
  return {
    run: (turns) => {
      const turn = kind === "tools" ? [asked, "lookup", found, said] : [asked, said];
      bytes = JSON.stringify(Array.from({ length: turns }, () => turn)).length;
      return undefined;
    },
    bytes: () => bytes,
  };
}

function ours(kind: Kind): Work {
  const lookup = defineTool({ name: "lookup", description, input, effect: "pure", run: () => found });
  const respond = async ({ messages }: { readonly messages: readonly Message[] }): Promise<ModelReply> =>
    kind === "tools" && messages.at(-1)?.role === "user"
      ? {
          content: [{ type: "call", id: `call-${messages.length}`, name: "lookup", args: { query: "x" } }],
          finish: "calls",
        }
      : { content: [{ type: "text", text: said }], finish: "stop" };
  return inFiles("ours.db", async (path, turns) => {
    const store = sqliteStore(path, { durability: "normal" });
    const agent = createAgent({ name: "assistant", model: { id: "scripted", respond }, tools: [lookup], store });
    for (let turn = 0; turn < turns; turn++) await agent.run({ thread: "chat", input: asked }).result;
    store.close();
  });
}

function theirs(langgraph: LangGraph, kind: Kind): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    // Twice 100 turns show how it grows; eight times as many would fill a disk.
    growth: [25, 50, 100, 200],
    open: () =>
      inFiles("theirs.db", async (path, turns) => {
        const saver = langgraph.SqliteSaver.fromConnString(path);
        const graph = peerGraph(langgraph, kind, saver);
        for (let turn = 0; turn < turns; turn++)
          await graph.invoke(
            { messages: [new langgraph.HumanMessage(asked)] },
            { durability: "sync", configurable: { thread_id: "chat" } },
          );
        saver.db.close();
      }),
  };
}

function peerGraph(
  { StateGraph, MessagesAnnotation, ToolNode, AIMessage, tool }: LangGraph,
  kind: Kind,
  checkpointer: ReturnType<LangGraph["SqliteSaver"]["fromConnString"]>,
): PeerGraph {
  type Seen = { readonly messages: readonly { readonly type?: string; readonly tool_calls?: readonly unknown[] }[] };
  const model = async ({ messages }: { readonly messages: readonly { getType(): string }[] }): Promise<object> => {
    const calls = kind === "tools" && messages.at(-1)?.getType() === "human";
    const call = { id: `call-${messages.length}`, name: "lookup", args: { query: "x" } };
    return { messages: [new AIMessage(calls ? { content: "", tool_calls: [call] } : { content: said })] };
  };
  const callsTool = ({ messages }: Seen): string =>
    (messages.at(-1)?.tool_calls?.length ?? 0) > 0 ? "tools" : "__end__";
  const lookup = tool(() => found, { name: "lookup", description, schema: input });
  return new StateGraph(MessagesAnnotation)
    .addNode("model", model)
    .addNode("tools", new ToolNode([lookup]))
    .addEdge("__start__", "model")
    .addConditionalEdges("model", callsTool, ["tools", "__end__"])
    .addEdge("tools", "model")
    .compile({ checkpointer });
}
