/**
 * B7 and B8: reads of a thread: newest state by state size, history page by history length; lists of many threads and
 * runs.
 */
import Database from "better-sqlite3";
import {
  channel,
  defineGraph,
  defineState,
  END,
  getHistory,
  getState,
  type Message,
  route,
  run,
  type SqliteStore,
  START,
  sqliteStore,
} from "statewright";
import { listRuns, listThreads } from "statewright/inspect";
import * as z from "zod";
import { type Case, type Contender, listDoublings, type Work } from "../case.ts";
import { measureTime } from "../measure.ts";
import type { LangGraph, PeerGraph, PeerSaver, Peers } from "../peers/langgraph.ts";
import { createScratchFile, type ScratchFile } from "../scratch-files.ts";

const text = "m".repeat(100);
const pageSize = 50;
const listSize = 20;

/** Reads per round: a single read is too short for a timer. */
const readsPerRound = 10;

export function createHeadCase({ langgraph }: Peers): Case {
  return {
    id: "B7",
    title: "load the newest state of a thread of 1,000 messages",
    unit: "load",
    budget: { cpuUs: 4_000, text: "4 ms" },
    size: 1_000,
    steady: true,
    sizeKind: "data",
    contenders: [
      { name: "statewright", role: "ours", growth: listDoublings(250), open: openChats },
      ...(langgraph === undefined ? [] : [createPeerChatContender(langgraph)]),
      { name: "rows of JSON, read and parsed", role: "limit", open: openBareRows },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.2 }],
  };
}

export function createHistoryPageCase({ langgraph }: Peers): Case {
  return {
    id: "B8",
    title: `one page of ${pageSize} checkpoints from a history of 1,000`,
    unit: "page",
    budget: { cpuUs: 15_000, text: "15 ms, independent of the history's length" },
    size: 1_000,
    sizeKind: "data",
    maxGrowth: 0.3,
    contenders: [
      { name: "statewright", role: "ours", growth: listDoublings(500), open: openCounters },
      ...(langgraph === undefined ? [] : [createPeerCounterContender(langgraph)]),
      { name: `${pageSize} rows of JSON, read and parsed`, role: "limit", open: () => openNewestRows(pageSize) },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.5 }],
  };
}

export function createListCase(): Case {
  return {
    id: "B8 lists",
    title: `the newest ${listSize} of 2,000 threads, and the newest ${listSize} of their finished runs`,
    unit: "pair of lists",
    budget: { cpuUs: 1_000, text: "none in the design; independent of the number of threads" },
    size: 2_000,
    sizeKind: "data",
    maxGrowth: 0.5,
    contenders: [
      { name: "statewright", role: "ours", growth: listDoublings(1_000), open: openListings },
      {
        name: `${2 * listSize} rows of JSON, read and parsed`,
        role: "limit",
        open: () => openNewestRows(2 * listSize),
      },
    ],
  };
}

/** Creates a thread of each requested size at its first use, and reads the thread `readings` times per round. */
function openThreads(
  createThread: (thread: string, size: number) => Promise<unknown>,
  readThread: (thread: string) => Promise<unknown>,
  close: () => unknown,
): Work {
  const created = new Set<number>();
  return {
    run: async (size) => {
      const thread = `thread-${size}`;
      if (!created.has(size)) await createThread(thread, size);
      created.add(size);
      const { cpuUs, wallUs } = await measureTime(async () => {
        for (let nth = 0; nth < readsPerRound; nth++) await readThread(thread);
      });
      return { cpuUs: cpuUs / readsPerRound, wallUs: wallUs / readsPerRound };
    },
    close: async () => {
      await close();
      return undefined;
    },
  };
}

const chat = defineGraph({ name: "chat", state: defineState({ messages: channel.messages() }) })
  .nodes({ answer: ({ messages: previous }) => ({ messages: [createMessage("assistant", previous.length)] }) })
  .edges({ [START]: "answer", answer: END });

function createMessage(role: "user" | "assistant", nth: number): Message {
  const content = [{ type: "text", text } as const];
  return role === "user" ? { role, id: `m${nth}`, content } : { role, id: `m${nth}`, content, finish: "stop" };
}

/** Chat threads. A turn is one run: one input message, one new message. */
function openChats(): Work {
  const file = createScratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  return openThreads(
    async (thread, size) => {
      for (let nth = 0; nth < size; nth += 2)
        await run(chat, { store, thread, input: { messages: [createMessage("user", nth)] } }).result;
    },
    (thread) => getState(chat, { store, thread }),
    async () => {
      await store.close();
      file.remove();
    },
  );
}

/** Raw rows: one row for each message. */
function openBareRows(): Work {
  return openRows("SELECT text FROM messages WHERE thread = ? ORDER BY nth", (nth) =>
    createMessage(nth % 2 === 0 ? "user" : "assistant", nth),
  );
}

/** Raw rows: the newest `limit` states of the counter. */
function openNewestRows(limit: number): Work {
  return openRows(`SELECT text FROM messages WHERE thread = ? ORDER BY nth DESC LIMIT ${limit}`, (n) => ({
    n,
    limit: n,
  }));
}

/** One file for each number of threads. Each thread has one finished run. */
function openListings(): Work {
  const files = new Map<string, { readonly file: ScratchFile; readonly store: SqliteStore }>();
  return openThreads(
    async (name, size) => {
      const file = createScratchFile(`${name}.db`);
      const store = sqliteStore(file.path, { durability: "normal" });
      files.set(name, { file, store });
      for (let nth = 0; nth < size; nth++)
        await run(counter, { store, thread: `t${nth}`, input: { n: 0, limit: 1 } }).result;
    },
    async (name) => {
      const { store } = files.get(name) ?? {};
      if (store === undefined) throw new Error(`listings: expected a file for "${name}", got none`);
      return [
        await listThreads(store, { limit: listSize }),
        await listRuns(store, { status: "done", limit: listSize }),
      ];
    },
    async () => {
      for (const { file, store } of files.values()) {
        await store.close();
        file.remove();
      }
    },
  );
}

function openRows(query: string, createEntry: (nth: number) => object): Work {
  const file = createScratchFile("rows.db");
  const db = new Database(file.path);
  db.exec(
    "CREATE TABLE messages (thread TEXT, nth INTEGER, text TEXT, PRIMARY KEY (thread, nth)) STRICT, WITHOUT ROWID",
  );
  const insert = db.prepare("INSERT INTO messages VALUES (?, ?, ?)");
  const select = db.prepare<[string], string>(query).pluck();
  return openThreads(
    async (thread, size) => {
      for (let nth = 0; nth < size; nth++) insert.run(thread, nth, JSON.stringify(createEntry(nth)));
    },
    async (thread) => select.all(thread).map((row): unknown => JSON.parse(row)),
    () => {
      db.close();
      file.remove();
    },
  );
}

const counter = defineGraph({ name: "counter", state: defineState({ n: z.number(), limit: z.number() }) })
  .nodes({ work: (state) => ({ n: state.n + 1 }) })
  .edges({ [START]: "work", work: route(["work", END], (state) => (state.n < state.limit ? "work" : END)) });

function openCounters(): Work {
  const file = createScratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  return openThreads(
    async (thread, limit) => {
      await run(counter, { store, thread, input: { n: 0, limit }, maxSteps: Number.POSITIVE_INFINITY }).result;
    },
    (thread) => readPage(getHistory(counter, { store, thread, pageSize })),
    async () => {
      await store.close();
      file.remove();
    },
  );
}

async function readPage(entries: AsyncIterable<unknown>): Promise<void> {
  let count = 0;
  for await (const _ of entries) if (++count === pageSize) break;
}

function openPeerThreads(
  name: string,
  { SqliteSaver }: LangGraph,
  {
    graphOf,
    make,
    read,
  }: {
    readonly graphOf: (saver: PeerSaver) => PeerGraph;
    readonly make: (graph: PeerGraph, config: object, size: number) => Promise<unknown>;
    readonly read: (graph: PeerGraph, config: object) => Promise<unknown>;
  },
): Work {
  const file = createScratchFile(name);
  const saver = SqliteSaver.fromConnString(file.path);
  const graph = graphOf(saver);
  const createConfig = (thread: string): object => ({
    recursionLimit: 1_000_000,
    durability: "sync",
    configurable: { thread_id: thread },
  });
  return openThreads(
    (thread, size) => make(graph, createConfig(thread), size),
    (thread) => read(graph, createConfig(thread)),
    () => {
      saver.db.close();
      file.remove();
    },
  );
}

/**
 * Ten runs of many messages each. LangGraph.js stores the whole conversation in each checkpoint, so the number of
 * runs makes no difference to a read.
 */
function createPeerChatContender(langgraph: LangGraph): Contender {
  const { AIMessage, HumanMessage, MessagesAnnotation, StateGraph } = langgraph;
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: listDoublings(250),
    open: () =>
      openPeerThreads("theirs.db", langgraph, {
        graphOf: (checkpointer) =>
          new StateGraph(MessagesAnnotation)
            .addNode("answer", () => ({ messages: [new AIMessage({ content: text })] }))
            .addEdge("__start__", "answer")
            .addEdge("answer", "__end__")
            .compile({ checkpointer }),
        make: async (graph, config, size) => {
          const createInput = (): readonly unknown[] =>
            Array.from({ length: size / 10 - 1 }, () => new HumanMessage(text));
          for (let nth = 0; nth < 10; nth++) await graph.invoke({ messages: createInput() }, config);
        },
        read: (graph, config) => graph.getState(config),
      }),
  };
}

function createPeerCounterContender(langgraph: LangGraph): Contender {
  const { Annotation, StateGraph } = langgraph;
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: listDoublings(250),
    open: () =>
      openPeerThreads("theirs.db", langgraph, {
        graphOf: (checkpointer) =>
          new StateGraph(Annotation.Root({ n: Annotation(), limit: Annotation() }))
            .addNode("work", (state: { readonly n: number }) => ({ n: state.n + 1 }))
            .addEdge("__start__", "work")
            .addConditionalEdges(
              "work",
              (state: { readonly n: number; readonly limit: number }) => (state.n < state.limit ? "work" : "__end__"),
              ["work", "__end__"],
            )
            .compile({ checkpointer }),
        make: (graph, config, limit) => graph.invoke({ n: 0, limit }, config),
        read: (graph, config) => readPage(graph.getStateHistory(config, { limit: pageSize })),
      }),
  };
}
