/** B14 to B16: an agent whose model calls one tool and is called again, both instant, in memory and saved; and its file. */
import { createAgent, defineTool, type Message, type ModelReply, type Store, sqliteStore } from "statewright";
import * as z from "zod";
import { type Case, type Contender, doublings, type Work } from "../case.ts";
import type { LangGraph, PeerGraph, PeerSaver, Peers } from "../peers/langgraph.ts";
import { scratchFile } from "../scratch-files.ts";

const input = z.object({ city: z.string() });
const description = "Current weather for a city.";
const answer = ({ city }: z.infer<typeof input>): string => `It is raining in ${city}.`;
const weather = defineTool({ name: "weather", description, input, effect: "pure", run: answer });

export function agentTurnInMemory({ langgraph, agents }: Peers): Case {
  return {
    id: "B14",
    title: "agent turn (model, then tool, both instant), in memory",
    unit: "turn",
    budget: { cpuUs: 100, text: "100 µs" },
    size: 400,
    steady: true,
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(50), open: () => ({ run: (size) => talk(size) }) },
      ...(langgraph === undefined ? [] : [peerInMemory(langgraph)]),
      ...agents,
      { name: "a bare loop of model and tool", role: "limit", open: () => ({ run: bareLoop }) },
    ],
    checks: [
      { of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.2 },
      { of: "statewright", to: "LangChain createAgent", measure: "cpu", atMost: 0.25 },
      { of: "statewright", to: "OpenAI Agents", measure: "cpu", atMost: 0.25 },
      { of: "statewright", to: "Mastra", measure: "cpu", atMost: 0.1 },
      { of: "statewright", to: "AI SDK", measure: "cpu", atMost: 0.6 },
    ],
  };
}

export function agentTurnSaved({ langgraph }: Peers): Case {
  return {
    id: "B15",
    title: "agent turn saved to SQLite, synchronous=NORMAL",
    unit: "turn",
    budget: { cpuUs: 250, text: "250 µs, flat from turn 1 to 400" },
    disk: true,
    size: 400,
    steady: true,
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(50), open: savedAgent },
      ...(langgraph === undefined ? [] : [peerSaved(langgraph)]),
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.2 }],
  };
}

export function agentFile({ langgraph }: Peers): Case {
  return {
    id: "B16",
    title: "a thread of 400 agent turns in a file of its own, synchronous=NORMAL",
    unit: "file",
    budget: { cpuUs: 100_000, text: "0.8 MB" },
    disk: true,
    size: 400,
    sizeOf: "data",
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(50), open: ownFile },
      ...(langgraph === undefined ? [] : [peerFile(langgraph)]),
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "bytes", atMost: 0.02 }],
  };
}

/** Calls the tool `turns` times, then ends. */
function scripted(turns: number): (messages: readonly Message[]) => ModelReply {
  return (messages) => {
    const turn = (messages.length - 1) / 2;
    if (turn >= turns) return { content: [{ type: "text", text: "Done." }], finish: "stop" };
    return {
      content: [{ type: "call", id: `call-${turn}`, name: "weather", args: { city: "Oslo" } }],
      finish: "calls",
    };
  };
}

async function talk(turns: number, store?: Store, thread?: string): Promise<undefined> {
  const reply = scripted(turns);
  const agent = createAgent({
    name: "assistant",
    model: { id: "scripted", respond: async ({ messages }) => reply(messages) },
    tools: [weather],
    maxTurns: turns + 1,
  });
  const saved = store === undefined || thread === undefined ? {} : { store, thread };
  await agent.run({ input: "Is it raining in Oslo?", maxSteps: Number.POSITIVE_INFINITY, ...saved }).result;
}

async function bareLoop(turns: number): Promise<undefined> {
  const reply = scripted(turns);
  const messages: Message[] = [{ role: "user", id: "0", content: [{ type: "text", text: "Is it raining in Oslo?" }] }];
  for (;;) {
    const { content, finish } = await (async () => reply(messages))();
    messages.push({ role: "assistant", id: String(messages.length), content, finish });
    const call = content.find((block) => block.type === "call");
    if (call === undefined) return undefined;
    const text = answer(input.parse(call.args));
    messages.push({
      role: "tool",
      id: String(messages.length),
      callId: call.id,
      name: call.name,
      content: [{ type: "text", text }],
      isError: false,
    });
  }
}

function savedAgent(): Work {
  const file = scratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  let runs = 0;
  let units = 0;
  return {
    run: (size) => {
      units += size;
      return talk(size, store, `thread-${runs++}`);
    },
    close: () => {
      store.close();
      const bytes = file.bytes() / units;
      file.remove();
      return bytes;
    },
  };
}

/** A file for each conversation, closed when it is over. */
function ownFile(): Work {
  let bytes = 0;
  return {
    run: async (turns) => {
      const file = scratchFile("ours.db");
      const store = sqliteStore(file.path, { durability: "normal" });
      await talk(turns, store, "thread");
      store.close();
      bytes = file.bytes();
      file.remove();
      return undefined;
    },
    bytes: () => bytes,
  };
}

function peerFile(langgraph: LangGraph): Contender {
  let bytes = 0;
  const run = async (turns: number): Promise<undefined> => {
    const file = scratchFile("theirs.db");
    const saver = langgraph.SqliteSaver.fromConnString(file.path);
    await talkPeer(langgraph, peerAgent(langgraph, turns, saver), "thread");
    saver.db.close();
    bytes = file.bytes();
    file.remove();
  };
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: doublings(50),
    open: () => ({ run, bytes: () => bytes }),
  };
}

function peerInMemory(langgraph: LangGraph): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    size: 100,
    growth: doublings(50),
    open: () => ({ run: (size) => talkPeer(langgraph, peerAgent(langgraph, size, undefined), "memory") }),
  };
}

function peerSaved(langgraph: LangGraph): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: doublings(50),
    open: () => {
      const file = scratchFile("theirs.db");
      const saver = langgraph.SqliteSaver.fromConnString(file.path);
      let runs = 0;
      let units = 0;
      return {
        run: (size) => {
          units += size;
          return talkPeer(langgraph, peerAgent(langgraph, size, saver), `thread-${runs++}`);
        },
        close: () => {
          saver.db.close();
          const bytes = file.bytes() / units;
          file.remove();
          return bytes;
        },
      };
    },
  };
}

function peerAgent(langgraph: LangGraph, turns: number, checkpointer: PeerSaver | undefined): PeerGraph {
  const { StateGraph, MessagesAnnotation, ToolNode, AIMessage, tool } = langgraph;
  const model = async ({ messages }: { readonly messages: readonly unknown[] }): Promise<object> => {
    const turn = (messages.length - 1) / 2;
    const call = { id: `call-${turn}`, name: "weather", args: { city: "Oslo" } };
    const said = turn < turns ? { content: "", tool_calls: [call] } : { content: "Done." };
    return { messages: [new AIMessage(said)] };
  };
  const callsTool = ({ messages }: { readonly messages: readonly { readonly tool_calls?: readonly unknown[] }[] }) =>
    (messages.at(-1)?.tool_calls?.length ?? 0) > 0 ? "tools" : "__end__";
  return new StateGraph(MessagesAnnotation)
    .addNode("model", model)
    .addNode("tools", new ToolNode([tool(answer as never, { name: "weather", description, schema: input })]))
    .addEdge("__start__", "model")
    .addConditionalEdges("model", callsTool, ["tools", "__end__"])
    .addEdge("tools", "model")
    .compile({ checkpointer });
}

async function talkPeer({ HumanMessage }: LangGraph, graph: PeerGraph, thread: string): Promise<undefined> {
  const config = { recursionLimit: 1_000_000, durability: "sync", configurable: { thread_id: thread } };
  await graph.invoke({ messages: [new HumanMessage("Is it raining in Oslo?")] }, config);
}
