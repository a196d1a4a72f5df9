/** B7 and B8: reading a thread: its newest state by its size, and a page of its history by the length of that; lists of many. */
import Database from "better-sqlite3";
import {
  defineGraph,
  defineState,
  END,
  getState,
  history,
  listRuns,
  listThreads,
  type Message,
  messages,
  route,
  run,
  type SqliteStore,
  START,
  sqliteStore,
} from "statewright";
import * as z from "zod";
import { type Case, type Contender, doublings, type Work } from "../case.ts";
import { timed } from "../measure.ts";
import type { LangGraph, PeerGraph, PeerSaver, Peers } from "../peers/langgraph.ts";
import { type ScratchFile, scratchFile } from "../scratch-files.ts";

const text = "m".repeat(100);
const pageSize = 50;
const listed = 20;

/** Readings of one round: one alone is too short to be timed. */
const readings = 10;

export function loadHead({ langgraph }: Peers): Case {
  return {
    id: "B7",
    title: "load the newest state of a thread of 1,000 messages",
    unit: "load",
    budget: { cpuUs: 4_000, text: "4 ms" },
    size: 1_000,
    steady: true,
    sizeOf: "data",
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(250), open: chats },
      ...(langgraph === undefined ? [] : [peerChats(langgraph)]),
      { name: "rows of JSON, read and parsed", role: "limit", open: bareRows },
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.2 }],
  };
}

export function historyPage({ langgraph }: Peers): Case {
  return {
    id: "B8",
    title: `one page of ${pageSize} from a history of 1,000 checkpoints`,
    unit: "page",
    budget: { cpuUs: 15_000, text: "15 ms, whatever the length of the history" },
    size: 1_000,
    sizeOf: "data",
    steepest: 0.3,
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(500), open: counters },
      ...(langgraph === undefined ? [] : [peerCounters(langgraph)]),
      { name: `${pageSize} rows of JSON, read and parsed`, role: "limit", open: () => newestRows(pageSize) },
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.5 }],
  };
}

export function listsOfMany(): Case {
  return {
    id: "B8 lists",
    title: `the newest ${listed} of 2,000 threads, and the newest ${listed} of their runs that are done`,
    unit: "pair of lists",
    budget: { cpuUs: 1_000, text: "none in the design; the same whatever the number of threads" },
    size: 2_000,
    sizeOf: "data",
    steepest: 0.5,
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(1_000), open: listings },
      { name: `${2 * listed} rows of JSON, read and parsed`, role: "limit", open: () => newestRows(2 * listed) },
    ],
  };
}

/** Threads of the sizes that are asked for, made when they are asked for first, and read as often as a round says. */
function threads(
  make: (thread: string, size: number) => Promise<unknown>,
  read: (thread: string) => Promise<unknown>,
  close: () => void,
): Work {
  const made = new Set<number>();
  return {
    run: async (size) => {
      const thread = `thread-${size}`;
      if (!made.has(size)) await make(thread, size);
      made.add(size);
      const { cpuUs, wallUs } = await timed(async () => {
        for (let nth = 0; nth < readings; nth++) await read(thread);
      });
      return { cpuUs: cpuUs / readings, wallUs: wallUs / readings };
    },
    close: () => {
      close();
      return undefined;
    },
  };
}

const chat = defineGraph({ name: "chat", state: defineState({ messages: messages() }) })
  .nodes({ answer: ({ messages: said }) => ({ messages: [message("assistant", said.length)] }) })
  .edges({ [START]: "answer", answer: END });

function message(role: "user" | "assistant", nth: number): Message {
  const content = [{ type: "text", text } as const];
  return role === "user" ? { role, id: `m${nth}`, content } : { role, id: `m${nth}`, content, finish: "stop" };
}

/** A turn is a run: one message comes in, one is added. */
function chats(): Work {
  const file = scratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  return threads(
    async (thread, size) => {
      for (let nth = 0; nth < size; nth += 2)
        await run(chat, { store, thread, input: { messages: [message("user", nth)] } }).result;
    },
    (thread) => getState(chat, { store, thread }),
    () => {
      store.close();
      file.remove();
    },
  );
}

/** The same messages, a row each. */
function bareRows(): Work {
  return rows("SELECT text FROM messages WHERE thread = ? ORDER BY nth", (nth) =>
    message(nth % 2 === 0 ? "user" : "assistant", nth),
  );
}

/** As many states of the counter, the newest first. */
function newestRows(limit: number): Work {
  return rows(`SELECT text FROM messages WHERE thread = ? ORDER BY nth DESC LIMIT ${limit}`, (n) => ({ n, limit: n }));
}

/** A file for each number of threads, each thread with a run that is done. */
function listings(): Work {
  const files = new Map<string, { readonly file: ScratchFile; readonly store: SqliteStore }>();
  return threads(
    async (name, size) => {
      const file = scratchFile(`${name}.db`);
      const store = sqliteStore(file.path, { durability: "normal" });
      files.set(name, { file, store });
      for (let nth = 0; nth < size; nth++)
        await run(counter, { store, thread: `t${nth}`, input: { n: 0, limit: 1 } }).result;
    },
    async (name) => {
      const { store } = files.get(name) ?? {};
      if (store === undefined) throw new Error(`there is no file of ${name}`);
      return [await listThreads(store, { limit: listed }), await listRuns(store, { status: "done", limit: listed })];
    },
    () => {
      for (const { file, store } of files.values()) {
        store.close();
        file.remove();
      }
    },
  );
}

function rows(query: string, entryOf: (nth: number) => object): Work {
  const file = scratchFile("rows.db");
  const db = new Database(file.path);
  db.exec(
    "CREATE TABLE messages (thread TEXT, nth INTEGER, text TEXT, PRIMARY KEY (thread, nth)) STRICT, WITHOUT ROWID",
  );
  const insert = db.prepare("INSERT INTO messages VALUES (?, ?, ?)");
  const select = db.prepare<[string], string>(query).pluck();
  return threads(
    async (thread, size) => {
      for (let nth = 0; nth < size; nth++) insert.run(thread, nth, JSON.stringify(entryOf(nth)));
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

function counters(): Work {
  const file = scratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  return threads(
    async (thread, limit) => {
      await run(counter, { store, thread, input: { n: 0, limit }, maxSteps: Number.POSITIVE_INFINITY }).result;
    },
    (thread) => takePage(history(counter, { store, thread, pageSize })),
    () => {
      store.close();
      file.remove();
    },
  );
}

async function takePage(entries: AsyncIterable<unknown>): Promise<void> {
  let taken = 0;
  for await (const _ of entries) if (++taken === pageSize) break;
}

function peerThreads(
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
  const file = scratchFile(name);
  const saver = SqliteSaver.fromConnString(file.path);
  const graph = graphOf(saver);
  const configOf = (thread: string): object => ({
    recursionLimit: 1_000_000,
    durability: "sync",
    configurable: { thread_id: thread },
  });
  return threads(
    (thread, size) => make(graph, configOf(thread), size),
    (thread) => read(graph, configOf(thread)),
    () => {
      saver.db.close();
      file.remove();
    },
  );
}

/** Ten runs of many messages each: it keeps the whole conversation in each checkpoint, so how it came about makes no difference. */
function peerChats(langgraph: LangGraph): Contender {
  const { AIMessage, HumanMessage, MessagesAnnotation, StateGraph } = langgraph;
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: doublings(250),
    open: () =>
      peerThreads("theirs.db", langgraph, {
        graphOf: (checkpointer) =>
          new StateGraph(MessagesAnnotation)
            .addNode("answer", () => ({ messages: [new AIMessage({ content: text })] }))
            .addEdge("__start__", "answer")
            .addEdge("answer", "__end__")
            .compile({ checkpointer }),
        make: async (graph, config, size) => {
          const sent = (): readonly unknown[] => Array.from({ length: size / 10 - 1 }, () => new HumanMessage(text));
          for (let nth = 0; nth < 10; nth++) await graph.invoke({ messages: sent() }, config);
        },
        read: (graph, config) => graph.getState(config),
      }),
  };
}

function peerCounters(langgraph: LangGraph): Contender {
  const { Annotation, StateGraph } = langgraph;
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: doublings(250),
    open: () =>
      peerThreads("theirs.db", langgraph, {
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
        read: (graph, config) => takePage(graph.getStateHistory(config, { limit: pageSize })),
      }),
  };
}
