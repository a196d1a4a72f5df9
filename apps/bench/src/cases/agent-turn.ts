/**
 * B14 to B16: agent turns of one model call and one tool call, both instant, in runs of 50 and of 400 turns, in
 * memory and with a store; size of the store file.
 */
import Database from "better-sqlite3";
import {
  type AnyModel,
  createAgent,
  defineTool,
  type Message,
  type Model,
  type ModelReply,
  type Store,
  sqliteStore,
} from "statewright";
import * as z from "zod";
import { type Case, type Contender, listDoublings, type Work } from "../case.ts";
import { measureTime } from "../measure.ts";
import type { AgentPeer } from "../peers/agents.ts";
import type { LangGraph, PeerGraph, PeerSaver, Peers } from "../peers/langgraph.ts";
import { createSdkModel } from "../peers/sdk-model.ts";
import type { Sample } from "../sample.ts";
import { createScratchFile } from "../scratch-files.ts";

const input = z.object({ city: z.string() });
const description = "Current weather for a city.";
const describeWeather = ({ city }: z.infer<typeof input>): string => `It is raining in ${city}.`;
const weather = defineTool({ name: "weather", description, input, effect: "pure", run: describeWeather });
const onceWeather = defineTool({ name: "weather", description, input, run: describeWeather });

/** Turns per conversation: a short and a long conversation. The difference shows the cost of the context. */
type Turns = 50 | 400;

/** Turns per round, for conversations of any length. */
const turnsPerRound = 400;

export function createMemoryAgentTurnCase(turns: Turns, { langgraph, agents }: Peers): Case {
  return {
    id: turns === 400 ? "B14" : "B14 short",
    title: `agent turn (one model call, one tool call, both instant) in a run of ${turns} turns, in memory`,
    unit: "turn",
    budget: { cpuUs: 100, text: "100 µs" },
    size: turnsPerRound,
    steady: true,
    contenders: [
      {
        name: "statewright",
        role: "ours",
        ...getGrowth(turns),
        open: () => ({ run: splitIntoRuns(turns, (size) => runConversation(size)) }),
      },
      ...(langgraph === undefined ? [] : [createMemoryPeerContender(langgraph, turns)]),
      ...agents.inMemory.map((agent) => createMemoryAgentContender(agent, turns)),
      {
        name: "bare loop of model and tool calls",
        role: "limit",
        open: () => ({ run: splitIntoRuns(turns, runBareLoop) }),
      },
    ],
    checks: [
      { subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.2 },
      { subject: "statewright", baseline: "LangChain createAgent", measure: "cpu", max: 0.25 },
      { subject: "statewright", baseline: "OpenAI Agents", measure: "cpu", max: 0.25 },
      { subject: "statewright", baseline: "Mastra", measure: "cpu", max: 0.1 },
      { subject: "statewright", baseline: "AI SDK", measure: "cpu", max: 0.6 },
    ],
  };
}

/**
 * The same language model of the AI SDK on both sides. An agent of Statewright streams each reply, as `streamText`
 * does; `generateText` streams none.
 */
export function createSdkAgentTurnCase(turns: Turns, { agents }: Peers): Case {
  const sdkAgents = agents.inMemory.filter(({ name }) => name.startsWith("AI SDK"));
  return {
    id: turns === 400 ? "B14 sdk" : "B14 sdk short",
    title: `agent turn in a run of ${turns} turns, in memory, with the same AI SDK model on both sides`,
    unit: "turn",
    budget: { cpuUs: 100, text: "no more than `streamText` of the AI SDK; growth 1.0" },
    size: turnsPerRound,
    steady: true,
    maxGrowth: 1.15,
    contenders: [
      {
        name: "statewright",
        role: "ours",
        ...getGrowth(turns),
        open: () => ({ run: splitIntoRuns(turns, (size) => runConversation(size, { model: createSdkModel(size) })) }),
      },
      ...sdkAgents.map((agent) => createMemoryAgentContender(agent, turns)),
    ],
    checks: [
      { subject: "statewright", baseline: "AI SDK streamText", measure: "cpu", max: 0.8 },
      { subject: "statewright", baseline: "AI SDK", measure: "cpu", max: turns === 400 ? 1 : 1.6 },
    ],
  };
}

export function createSavedAgentTurnCase(turns: Turns, { langgraph, agents }: Peers): Case {
  return {
    id: turns === 400 ? "B15" : "B15 short",
    title: `agent turn in a run of ${turns} turns, saved to SQLite, synchronous=NORMAL`,
    unit: "turn",
    budget: { cpuUs: 250, text: "250 µs, flat from turn 1 to 400" },
    disk: true,
    size: turnsPerRound,
    steady: true,
    contenders: [
      {
        name: "statewright",
        role: "ours",
        ...getGrowth(turns),
        open: () => openSavedAgent(turns, { durability: "normal" }),
      },
      ...(langgraph === undefined ? [] : [createSavedPeerContender(langgraph, turns)]),
      ...agents.saved.map((agent) => createSavedAgentContender(agent, turns)),
      { name: "bare loop, two transactions per turn", role: "limit", open: () => openSavedLoop(turns, "NORMAL") },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.2 }],
  };
}

/** The defaults as a user has them: `durability: "full"`, and a tool that runs `once`. */
export function createDefaultAgentTurnCase({ langgraph }: Peers): Case {
  return {
    id: "B15 default",
    title:
      "agent turn in a run of 50 turns, saved to SQLite, with the defaults: synchronous=FULL, a tool that runs once",
    unit: "turn",
    budget: { cpuUs: 300, text: "1.3x the CPU of NORMAL and a pure tool" },
    disk: true,
    size: 50,
    steady: true,
    contenders: [
      { name: "statewright", role: "ours", open: () => openSavedAgent(50, { tool: onceWeather }) },
      { name: pureName, role: "ours", open: () => openSavedAgent(50, { durability: "normal" }) },
      ...(langgraph === undefined ? [] : [createSavedPeerContender(langgraph, 50)]),
      { name: "bare loop, two transactions per turn", role: "limit", open: () => openSavedLoop(50, "FULL") },
    ],
    checks: [
      // Regression limits above the budget: LangGraph.js does not wait for the disk, and a busy disk takes CPU.
      { subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 1 },
      { subject: "statewright", baseline: pureName, measure: "cpu", max: 8 },
    ],
  };
}

const pureName = "statewright, synchronous=NORMAL and a pure tool";

export function createAgentFileCase({ langgraph, agents }: Peers): Case {
  return {
    id: "B16",
    title: "thread of 400 agent turns in its own file, synchronous=NORMAL",
    unit: "file",
    budget: { cpuUs: 100_000, text: "0.8 MB" },
    disk: true,
    size: 400,
    sizeKind: "data",
    contenders: [
      { name: "statewright", role: "ours", growth: listDoublings(50), open: openFilePerConversation },
      ...(langgraph === undefined ? [] : [createPeerFileContender(langgraph)]),
      ...agents.saved.map(createAgentFileContender),
      { name: "messages as JSON, serialized once", role: "limit", open: openJsonWork },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "bytes", max: 0.02 }],
  };
}

/**
 * Growth is measured for long conversations only. A larger round of short conversations only has more conversations.
 */
function getGrowth(turns: Turns): Pick<Contender, "growth"> {
  return turns === 400 ? { growth: listDoublings(50) } : {};
}

/** Splits the turns of a round into runs of one length. For the measurement of growth, the whole round is one run. */
function splitIntoRuns(turns: Turns, converse: (turns: number) => Promise<Sample | undefined>): Work["run"] {
  return async (size) => {
    if (turns === 400) return converse(size);
    let [cpuUs, wallUs, measured] = [0, 0, false];
    for (let remaining = size; remaining > 0; remaining -= turns) {
      const sample = await converse(Math.min(turns, remaining));
      if (sample === undefined) continue;
      measured = true;
      cpuUs += sample.cpuUs;
      wallUs += sample.wallUs;
    }
    return measured ? { cpuUs, wallUs } : undefined;
  };
}

function createMemoryAgentContender({ name, open }: AgentPeer, turns: Turns): Contender {
  return {
    name,
    role: "peer",
    ...getGrowth(turns),
    ownProcesses: true,
    open: () => {
      const { talk: converse, close } = open();
      return { run: splitIntoRuns(turns, (size) => converse(size)), close };
    },
  };
}

function createSavedAgentContender({ name, open }: AgentPeer, turns: Turns): Contender {
  return {
    name,
    role: "peer",
    ownProcesses: true,
    open: () => {
      const { talk: converse, close } = open();
      const file = createScratchFile("theirs.db");
      let units = 0;
      const runTurns = splitIntoRuns(turns, (size) => converse(size, file.path));
      return {
        run: (size) => {
          units += size;
          return runTurns(size);
        },
        close: async () => {
          await close();
          const bytes = file.countBytes() / units;
          file.remove();
          return bytes;
        },
      };
    },
  };
}

function createAgentFileContender({ name, open }: AgentPeer): Contender {
  return {
    name,
    role: "peer",
    growth: listDoublings(50),
    ownProcesses: true,
    open: () => {
      const { talk: converse, close } = open();
      let bytes = 0;
      return {
        run: async (turns) => {
          const file = createScratchFile("theirs.db");
          const sample = await converse(turns, file.path);
          bytes = file.countBytes();
          file.remove();
          return sample;
        },
        getBytes: () => bytes,
        close,
      };
    },
  };
}

/** Creates a scripted model: `turns` tool calls, then a final text. */
function createScriptedModel(turns: number): (messages: readonly Message[]) => ModelReply {
  return (messages) => {
    const turn = (messages.length - 1) / 2;
    if (turn >= turns) return { content: [{ type: "text", text: "Done." }], finish: "stop" };
    return {
      content: [{ type: "call", id: `call-${turn}`, name: "weather", args: { city: "Oslo" } }],
      finish: "calls",
    };
  };
}

/** Model, tools and location of a conversation; by default an own model object and a pure tool, in memory. */
interface ConversationSetup {
  readonly model?: AnyModel;
  readonly tool?: typeof weather;
  readonly location?: { readonly store: Store; readonly thread: string };
}

async function runConversation(
  turns: number,
  { model = createOwnModel(turns), tool = weather, location }: ConversationSetup = {},
): Promise<undefined> {
  const agent = createAgent({ name: "assistant", model, tools: [tool], maxTurns: turns + 1 });
  await agent.run({ input: "Is it raining in Oslo?", maxSteps: Number.POSITIVE_INFINITY, ...location }).result;
}

function createOwnModel(turns: number): Model {
  const reply = createScriptedModel(turns);
  return { id: "scripted", respond: async ({ messages }) => reply(messages) };
}

/**
 * Runs the model and tool calls without a framework. `step` is called for each new message of the model or the tool.
 */
async function runBareLoop(turns: number, onMessage: (added: Message) => void = () => undefined): Promise<undefined> {
  const reply = createScriptedModel(turns);
  const messages: Message[] = [{ role: "user", id: "0", content: [{ type: "text", text: "Is it raining in Oslo?" }] }];
  const add = (message: Message): void => {
    messages.push(message);
    onMessage(message);
  };
  for (;;) {
    const { content, finish } = await (async () => reply(messages))();
    add({ role: "assistant", id: String(messages.length), content, finish });
    const call = content.find((block) => block.type === "call");
    if (call === undefined) return undefined;
    const text = describeWeather(input.parse(call.args));
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

/** Commits each message in its own transaction, together with a checkpoint row. */
function openSavedLoop(turns: Turns, synchronous: "FULL" | "NORMAL"): Work {
  const file = createScratchFile("loop.db");
  const db = new Database(file.path);
  db.pragma("journal_mode = WAL");
  db.pragma(`synchronous = ${synchronous}`);
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
  const runTurns = splitIntoRuns(turns, (size) => runBareLoop(size, save));
  let units = 0;
  return {
    run: (size) => {
      units += size;
      return runTurns(size);
    },
    close: () => {
      db.close();
      const bytes = file.countBytes() / units;
      file.remove();
      return bytes;
    },
  };
}

/** Serializes the conversation as JSON, as the lower bound of the file size. */
function openJsonWork(): Work {
  let bytes = 0;
  return {
    run: async (turns) => {
      const messages: Message[] = [];
      await runBareLoop(turns, (added) => messages.push(added));
      return measureTime(() => {
        bytes = JSON.stringify(messages).length;
      });
    },
    getBytes: () => bytes,
  };
}

interface SavedAgentSetup {
  readonly durability?: "full" | "normal";
  readonly tool?: typeof weather;
}

function openSavedAgent(turns: Turns, { durability = "full", tool = weather }: SavedAgentSetup): Work {
  const file = createScratchFile("ours.db");
  const store = sqliteStore(file.path, { durability });
  let threads = 0;
  let units = 0;
  const runTurns = splitIntoRuns(turns, (size) =>
    runConversation(size, { tool, location: { store, thread: `thread-${threads++}` } }),
  );
  return {
    run: (size) => {
      units += size;
      return runTurns(size);
    },
    close: async () => {
      await store.close();
      const bytes = file.countBytes() / units;
      file.remove();
      return bytes;
    },
  };
}

/** Saves each conversation in its own file, closed at the end of the run. */
function openFilePerConversation(): Work {
  let bytes = 0;
  return {
    run: async (turns) => {
      const file = createScratchFile("ours.db");
      const store = sqliteStore(file.path, { durability: "normal" });
      await runConversation(turns, { location: { store, thread: "thread" } });
      await store.close();
      bytes = file.countBytes();
      file.remove();
      return undefined;
    },
    getBytes: () => bytes,
  };
}

function createPeerFileContender(langgraph: LangGraph): Contender {
  let bytes = 0;
  const run = async (turns: number): Promise<undefined> => {
    const file = createScratchFile("theirs.db");
    const saver = langgraph.SqliteSaver.fromConnString(file.path);
    await runPeerConversation(langgraph, createPeerAgent(langgraph, turns, saver), "thread");
    saver.db.close();
    bytes = file.countBytes();
    file.remove();
  };
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: listDoublings(50),
    open: () => ({ run, getBytes: () => bytes }),
  };
}

function createMemoryPeerContender(langgraph: LangGraph, turns: Turns): Contender {
  const converse = (size: number) =>
    runPeerConversation(langgraph, createPeerAgent(langgraph, size, undefined), "memory");
  return {
    name: "LangGraph.js",
    role: "peer",
    ...getGrowth(turns),
    open: () => ({ run: splitIntoRuns(turns, converse) }),
  };
}

function createSavedPeerContender(langgraph: LangGraph, turns: Turns): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    ...getGrowth(turns),
    open: () => {
      const file = createScratchFile("theirs.db");
      const saver = langgraph.SqliteSaver.fromConnString(file.path);
      let threads = 0;
      let units = 0;
      const runTurns = splitIntoRuns(turns, (size) =>
        runPeerConversation(langgraph, createPeerAgent(langgraph, size, saver), `thread-${threads++}`),
      );
      return {
        run: (size) => {
          units += size;
          return runTurns(size);
        },
        close: () => {
          saver.db.close();
          const bytes = file.countBytes() / units;
          file.remove();
          return bytes;
        },
      };
    },
  };
}

function createPeerAgent(langgraph: LangGraph, turns: number, checkpointer: PeerSaver | undefined): PeerGraph {
  const { StateGraph, MessagesAnnotation, ToolNode, AIMessage, tool } = langgraph;
  const callModel = async ({ messages }: { readonly messages: readonly unknown[] }): Promise<object> => {
    const turn = (messages.length - 1) / 2;
    const call = { id: `call-${turn}`, name: "weather", args: { city: "Oslo" } };
    const reply = turn < turns ? { content: "", tool_calls: [call] } : { content: "Done." };
    return { messages: [new AIMessage(reply)] };
  };
  const routeToolCalls = ({
    messages,
  }: {
    readonly messages: readonly { readonly tool_calls?: readonly unknown[] }[];
  }) => ((messages.at(-1)?.tool_calls?.length ?? 0) > 0 ? "tools" : "__end__");
  return new StateGraph(MessagesAnnotation)
    .addNode("model", callModel)
    .addNode("tools", new ToolNode([tool(describeWeather as never, { name: "weather", description, schema: input })]))
    .addEdge("__start__", "model")
    .addConditionalEdges("model", routeToolCalls, ["tools", "__end__"])
    .addEdge("tools", "model")
    .compile({ checkpointer });
}

async function runPeerConversation({ HumanMessage }: LangGraph, graph: PeerGraph, thread: string): Promise<undefined> {
  const config = { recursionLimit: 1_000_000, durability: "sync", configurable: { thread_id: thread } };
  await graph.invoke({ messages: [new HumanMessage("Is it raining in Oslo?")] }, config);
}
