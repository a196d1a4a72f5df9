/**
 * B14 to B16: an agent whose model calls one tool and is called again, both instant, in runs of 50 and of 400 turns, in
 * memory and saved; and its file.
 */
import Database from "better-sqlite3";
import { createAgent, defineTool, type Message, type ModelReply, type Store, sqliteStore } from "statewright";
import * as z from "zod";
import { type Case, type Contender, doublings, type Work } from "../case.ts";
import { type Sample, timed } from "../measure.ts";
import type { AgentPeer } from "../peers/agents.ts";
import type { LangGraph, PeerGraph, PeerSaver, Peers } from "../peers/langgraph.ts";
import { scratchFile } from "../scratch-files.ts";

const input = z.object({ city: z.string() });
const description = "Current weather for a city.";
const answer = ({ city }: z.infer<typeof input>): string => `It is raining in ${city}.`;
const weather = defineTool({ name: "weather", description, input, effect: "pure", run: answer });

/** Turns of a conversation: a short one and a long one; what the context costs shows between the two. */
type Turns = 50 | 400;

/** Turns of a round, whatever the length of its conversations. */
const turnsOfRound = 400;

export function agentTurnInMemory(turns: Turns, { langgraph, agents }: Peers): Case {
  return {
    id: turns === 400 ? "B14" : "B14 short",
    title: `agent turn (model, then tool, both instant) of a run of ${turns}, in memory`,
    unit: "turn",
    budget: { cpuUs: 100, text: "100 µs" },
    size: turnsOfRound,
    steady: true,
    contenders: [
      {
        name: "statewright",
        role: "ours",
        ...grown(turns),
        open: () => ({ run: inRuns(turns, (size) => talk(size)) }),
      },
      ...(langgraph === undefined ? [] : [peerInMemory(langgraph, turns)]),
      ...agents.inMemory.map((agent) => agentInMemory(agent, turns)),
      { name: "a bare loop of model and tool", role: "limit", open: () => ({ run: inRuns(turns, bareLoop) }) },
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

export function agentTurnSaved(turns: Turns, { langgraph, agents }: Peers): Case {
  return {
    id: turns === 400 ? "B15" : "B15 short",
    title: `agent turn of a run of ${turns} saved to SQLite, synchronous=NORMAL`,
    unit: "turn",
    budget: { cpuUs: 250, text: "250 µs, flat from turn 1 to 400" },
    disk: true,
    size: turnsOfRound,
    steady: true,
    contenders: [
      { name: "statewright", role: "ours", ...grown(turns), open: () => savedAgent(turns) },
      ...(langgraph === undefined ? [] : [peerSaved(langgraph, turns)]),
      ...agents.saved.map((agent) => agentSaved(agent, turns)),
      { name: "a bare loop, two transactions a turn", role: "limit", open: () => savedLoop(turns) },
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.2 }],
  };
}

export function agentFile({ langgraph, agents }: Peers): Case {
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
      ...agents.saved.map(agentInFile),
      { name: "its messages as JSON, once", role: "limit", open: asJson },
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "bytes", atMost: 0.02 }],
  };
}

/** A long conversation is measured at all lengths; in a round of short ones there are only more of them. */
function grown(turns: Turns): Pick<Contender, "growth"> {
  return turns === 400 ? { growth: doublings(50) } : {};
}

/** A round of so many turns in runs of one length; where growth is measured, the length is all that changes. */
function inRuns(turns: Turns, talks: (turns: number) => Promise<Sample | undefined>): Work["run"] {
  return async (size) => {
    if (turns === 400) return talks(size);
    let [cpuUs, wallUs, own] = [0, 0, false];
    for (let left = size; left > 0; left -= turns) {
      const sample = await talks(Math.min(turns, left));
      if (sample === undefined) continue;
      own = true;
      cpuUs += sample.cpuUs;
      wallUs += sample.wallUs;
    }
    return own ? { cpuUs, wallUs } : undefined;
  };
}

function agentInMemory({ name, open }: AgentPeer, turns: Turns): Contender {
  return {
    name,
    role: "peer",
    ...grown(turns),
    elsewhere: true,
    open: () => {
      const { talk: talks, close } = open();
      return { run: inRuns(turns, (size) => talks(size)), close };
    },
  };
}

function agentSaved({ name, open }: AgentPeer, turns: Turns): Contender {
  return {
    name,
    role: "peer",
    elsewhere: true,
    open: () => {
      const { talk: talks, close } = open();
      const file = scratchFile("theirs.db");
      let units = 0;
      const runs = inRuns(turns, (size) => talks(size, file.path));
      return {
        run: (size) => {
          units += size;
          return runs(size);
        },
        close: async () => {
          await close();
          const bytes = file.bytes() / units;
          file.remove();
          return bytes;
        },
      };
    },
  };
}

function agentInFile({ name, open }: AgentPeer): Contender {
  return {
    name,
    role: "peer",
    growth: doublings(50),
    elsewhere: true,
    open: () => {
      const { talk: talks, close } = open();
      let bytes = 0;
      return {
        run: async (turns) => {
          const file = scratchFile("theirs.db");
          const sample = await talks(turns, file.path);
          bytes = file.bytes();
          file.remove();
          return sample;
        },
        bytes: () => bytes,
        close,
      };
    },
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

/** `step`: what one answer of the model or of the tool adds. */
async function bareLoop(turns: number, step: (added: Message) => void = () => undefined): Promise<undefined> {
  const reply = scripted(turns);
  const messages: Message[] = [{ role: "user", id: "0", content: [{ type: "text", text: "Is it raining in Oslo?" }] }];
  const add = (message: Message): void => {
    messages.push(message);
    step(message);
  };
  for (;;) {
    const { content, finish } = await (async () => reply(messages))();
    add({ role: "assistant", id: String(messages.length), content, finish });
    const call = content.find((block) => block.type === "call");
    if (call === undefined) return undefined;
    const text = answer(input.parse(call.args));
    add({
      role: "tool",
      id: String(messages.length),
      callId: call.id,
      name: call.name,
      content: [{ type: "text", text }],
      isError: false,
    });
  }
}

/** Each message in a transaction of its own, with the row that says how far the thread has come. */
function savedLoop(turns: Turns): Work {
  const file = scratchFile("loop.db");
  const db = new Database(file.path);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = NORMAL");
  db.exec("CREATE TABLE messages (key INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT");
  db.exec("CREATE TABLE checkpoints (key INTEGER PRIMARY KEY, message INTEGER NOT NULL) STRICT");
  const begin = db.prepare("BEGIN IMMEDIATE");
  const message = db.prepare("INSERT INTO messages (text) VALUES (?)");
  const checkpoint = db.prepare("INSERT INTO checkpoints (message) VALUES (?)");
  const commit = db.prepare("COMMIT");
  const save = (added: Message): void => {
    begin.run();
    checkpoint.run(message.run(JSON.stringify(added)).lastInsertRowid);
    commit.run();
  };
  const runs = inRuns(turns, (size) => bareLoop(size, save));
  let units = 0;
  return {
    run: (size) => {
      units += size;
      return runs(size);
    },
    close: () => {
      db.close();
      const bytes = file.bytes() / units;
      file.remove();
      return bytes;
    },
  };
}

/** The conversation as the smallest text that holds it. */
function asJson(): Work {
  let bytes = 0;
  return {
    run: async (turns) => {
      const messages: Message[] = [];
      await bareLoop(turns, (added) => messages.push(added));
      return timed(() => {
        bytes = JSON.stringify(messages).length;
      });
    },
    bytes: () => bytes,
  };
}

function savedAgent(turns: Turns): Work {
  const file = scratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  let threads = 0;
  let units = 0;
  const runs = inRuns(turns, (size) => talk(size, store, `thread-${threads++}`));
  return {
    run: (size) => {
      units += size;
      return runs(size);
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

function peerInMemory(langgraph: LangGraph, turns: Turns): Contender {
  const talks = (size: number) => talkPeer(langgraph, peerAgent(langgraph, size, undefined), "memory");
  return { name: "LangGraph.js", role: "peer", ...grown(turns), open: () => ({ run: inRuns(turns, talks) }) };
}

function peerSaved(langgraph: LangGraph, turns: Turns): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    ...grown(turns),
    open: () => {
      const file = scratchFile("theirs.db");
      const saver = langgraph.SqliteSaver.fromConnString(file.path);
      let threads = 0;
      let units = 0;
      const runs = inRuns(turns, (size) =>
        talkPeer(langgraph, peerAgent(langgraph, size, saver), `thread-${threads++}`),
      );
      return {
        run: (size) => {
          units += size;
          return runs(size);
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
