/** B9: load a run that waits for a person, from a store that has not seen it, among more and more that wait. */
import Database from "better-sqlite3";
import { getState, run, sqliteStore } from "statewright";
import { type Case, type Contender, doublings, type Work } from "../case.ts";
import { asking } from "../interrupt-graph.ts";
import { type Sample, timed } from "../measure.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import { type ScratchFile, scratchFile } from "../scratch-files.ts";

/** Threads that a round loads, each once: one alone is too short to be timed. */
const loads = 100;

const text = "s".repeat(200);

export function waitingRun({ langgraph }: Peers): Case {
  return {
    id: "B9",
    title: "load a run that waits for a person, one of 1,000, from a store that has read nothing of it",
    unit: "load",
    budget: { cpuUs: 200, text: "0.2 ms and what the state takes; no heap while it waits (Load, below)" },
    size: 1_000,
    sizeOf: "data",
    steady: true,
    steepest: 0.3,
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(250), open: ours },
      ...(langgraph === undefined ? [] : [theirs(langgraph)]),
      { name: "a row of JSON, read and parsed", role: "limit", open: bareRows },
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 1.25 }],
  };
}

interface Opened {
  readonly make: (thread: string) => Promise<unknown>;
  readonly load: (thread: string) => Promise<unknown>;
  readonly close: () => void;
}

/** A file for each number of threads, made when it is asked for first, and opened anew in each round. */
function filesOf(open: (path: string) => Opened): Work {
  const files = new Map<number, ScratchFile>();
  return {
    run: async (threads) => {
      const path = files.get(threads)?.path ?? (await filled(threads));
      const { load, close } = open(path);
      const times = Math.min(loads, threads);
      const apart = Math.floor(threads / times);
      try {
        // The store has its statements, and nothing of the threads that are timed.
        await load(`thread-${threads - 1}`);
        return eachOf(
          await timed(async () => {
            for (let nth = 0; nth < times; nth++) await load(`thread-${nth * apart}`);
          }),
          times,
        );
      } finally {
        close();
      }
    },
    close: () => {
      for (const file of files.values()) file.remove();
      return undefined;
    },
  };

  async function filled(threads: number): Promise<string> {
    const file = scratchFile("waiting.db");
    const { make, close } = open(file.path);
    for (let nth = 0; nth < threads; nth++) await make(`thread-${nth}`);
    close();
    files.set(threads, file);
    return file.path;
  }
}

function eachOf({ cpuUs, wallUs }: Sample, times: number): Sample {
  return { cpuUs: cpuUs / times, wallUs: wallUs / times };
}

function ours(): Work {
  return filesOf((path) => {
    const store = sqliteStore(path, { durability: "normal" });
    return {
      make: (thread) => run(asking, { store, thread, input: { log: [text] } }).result,
      load: (thread) => getState(asking, { store, thread }),
      close: () => store.close(),
    };
  });
}

function bareRows(): Work {
  return filesOf((path) => {
    const db = new Database(path);
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = NORMAL");
    db.exec("CREATE TABLE IF NOT EXISTS states (thread TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID");
    const insert = db.prepare("INSERT INTO states VALUES (?, ?)");
    const select = db.prepare<[string], string>("SELECT text FROM states WHERE thread = ?").pluck();
    return {
      make: async (thread) => insert.run(thread, JSON.stringify({ log: [text] })),
      load: async (thread): Promise<unknown> => JSON.parse(select.get(thread) ?? ""),
      close: () => {
        db.close();
      },
    };
  });
}

function theirs({ StateGraph, Annotation, SqliteSaver, interrupt }: LangGraph): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: doublings(250),
    open: () =>
      filesOf((path) => {
        const saver = SqliteSaver.fromConnString(path);
        const graph = new StateGraph(Annotation.Root({ log: Annotation() }))
          .addNode("ask", () => ({ log: [`${interrupt("ok")}`] }))
          .addEdge("__start__", "ask")
          .addEdge("ask", "__end__")
          .compile({ checkpointer: saver });
        const configOf = (thread: string): object => ({ durability: "sync", configurable: { thread_id: thread } });
        return {
          make: (thread) => graph.invoke({ log: [text] }, configOf(thread)),
          load: (thread) => graph.getState(configOf(thread)),
          close: () => {
            saver.db.close();
          },
        };
      }),
  };
}
