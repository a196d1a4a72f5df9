/** B4 and B5: bytes on disk of a chat, plain and with one tool call per turn. Every turn is its own run. */
import { createAgent, defineTool, type Message, type ModelReply, sqliteStore } from "statewright";
import * as z from "zod";
import { type Case, type Contender, listDoublings, type Work } from "../case.ts";
import type { LangGraph, PeerGraph, Peers } from "../peers/langgraph.ts";
import { createScratchFile, type ScratchFile } from "../scratch-files.ts";

type Kind = "plain" | "tools";

// 200 turns of these texts result in a state of 278 KB; with one tool call per turn, 689 KB.
const userText = "q".repeat(330);
const replyText = "a".repeat(1_000);
const toolText = "f".repeat(1_850);

const input = z.object({ query: z.string() });
const description = "Look something up.";

export function createChatCase(kind: Kind, { langgraph }: Peers): Case {
  const tools = kind === "tools";
  return {
    id: tools ? "B5" : "B4",
    title: tools ? "chat of 200 turns with one tool call per turn, saved" : "chat of 200 turns, saved",
    unit: "chat of 200 turns",
    budget: tools
      ? { cpuUs: 200 * 400, text: "2 MB on disk (state 689 KB)" }
      : { cpuUs: 200 * 250, text: "0.8 MB on disk (state 278 KB)" },
    disk: true,
    size: 200,
    sizeKind: "data",
    contenders: [
      { name: "statewright", role: "ours", growth: listDoublings(50), open: () => openStatewright(kind) },
      ...(langgraph === undefined ? [] : [createPeerContender(langgraph, kind)]),
      { name: "messages as JSON, serialized once", role: "limit", open: () => openJsonWork(kind) },
    ],
    checks: [
      { subject: "statewright", baseline: "LangGraph.js", measure: "bytes", max: 0.02 },
      { subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.2 },
    ],
  };
}

/** Saves the chat of each round in its own file. */
function openFilePerChat(name: string, talk: (path: string, turns: number) => Promise<void>): Work {
  let bytes = 0;
  const runChat = async (turns: number): Promise<undefined> => {
    const file: ScratchFile = createScratchFile(name);
    await talk(file.path, turns);
    bytes = file.countBytes();
    file.remove();
  };
  return { run: runChat, getBytes: () => bytes };
}

/** Serializes the chat as JSON, as the lower bound of the file size. */
function openJsonWork(kind: Kind): Work {
  let bytes = 0;
  return {
    run: (turns) => {
      const turn = kind === "tools" ? [userText, "lookup", toolText, replyText] : [userText, replyText];
      bytes = JSON.stringify(Array.from({ length: turns }, () => turn)).length;
      return undefined;
    },
    getBytes: () => bytes,
  };
}

function openStatewright(kind: Kind): Work {
  const lookup = defineTool({ name: "lookup", description, input, effect: "pure", run: () => toolText });
  const respond = async ({ messages }: { readonly messages: readonly Message[] }): Promise<ModelReply> =>
    kind === "tools" && messages.at(-1)?.role === "user"
      ? {
          content: [{ type: "call", id: `call-${messages.length}`, name: "lookup", args: { query: "x" } }],
          finish: "calls",
        }
      : { content: [{ type: "text", text: replyText }], finish: "stop" };
  return openFilePerChat("ours.db", async (path, turns) => {
    const store = sqliteStore(path, { durability: "normal" });
    const agent = createAgent({ name: "assistant", model: { id: "scripted", respond }, tools: [lookup], store });
    for (let turn = 0; turn < turns; turn++) await agent.run({ thread: "chat", input: userText }).result;
    await store.close();
  });
}

function createPeerContender(langgraph: LangGraph, kind: Kind): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    // Growth up to 200 turns is enough; 400 turns would fill a disk.
    growth: [25, 50, 100, 200],
    open: () =>
      openFilePerChat("theirs.db", async (path, turns) => {
        const saver = langgraph.SqliteSaver.fromConnString(path);
        const graph = createPeerGraph(langgraph, kind, saver);
        for (let turn = 0; turn < turns; turn++)
          await graph.invoke(
            { messages: [new langgraph.HumanMessage(userText)] },
            { durability: "sync", configurable: { thread_id: "chat" } },
          );
        saver.db.close();
      }),
  };
}

function createPeerGraph(
  { StateGraph, MessagesAnnotation, ToolNode, AIMessage, tool }: LangGraph,
  kind: Kind,
  checkpointer: ReturnType<LangGraph["SqliteSaver"]["fromConnString"]>,
): PeerGraph {
  type PeerState = {
    readonly messages: readonly { readonly type?: string; readonly tool_calls?: readonly unknown[] }[];
  };
  const callModel = async ({ messages }: { readonly messages: readonly { getType(): string }[] }): Promise<object> => {
    const calls = kind === "tools" && messages.at(-1)?.getType() === "human";
    const call = { id: `call-${messages.length}`, name: "lookup", args: { query: "x" } };
    return { messages: [new AIMessage(calls ? { content: "", tool_calls: [call] } : { content: replyText })] };
  };
  const routeToolCalls = ({ messages }: PeerState): string =>
    (messages.at(-1)?.tool_calls?.length ?? 0) > 0 ? "tools" : "__end__";
  const lookup = tool(() => toolText, { name: "lookup", description, schema: input });
  return new StateGraph(MessagesAnnotation)
    .addNode("model", callModel)
    .addNode("tools", new ToolNode([lookup]))
    .addEdge("__start__", "model")
    .addConditionalEdges("model", routeToolCalls, ["tools", "__end__"])
    .addEdge("tools", "model")
    .compile({ checkpointer });
}
