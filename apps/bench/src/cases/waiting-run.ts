/** B9: load of a run at an interrupt, from a newly opened store, by the number of waiting runs. */
import Database from "better-sqlite3";
import { getState, run, sqliteStore } from "statewright";
import { type Case, type Contender, listDoublings, type Work } from "../case.ts";
import { interruptGraph } from "../interrupt-graph.ts";
import { measureTime } from "../measure.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import type { Sample } from "../sample.ts";
import { createScratchFile, type ScratchFile } from "../scratch-files.ts";

/** Threads per round, each loaded once: a single load is too short for a timer. */
const loadsPerRound = 100;

const text = "s".repeat(200);

export function createWaitingRunCase({ langgraph }: Peers): Case {
  return {
    id: "B9",
    title: "load of a run at an interrupt, one of 1,000, from a newly opened store",
    unit: "load",
    budget: { cpuUs: 200, text: "0.2 ms plus the read of the state; no heap per waiting run (section Load)" },
    size: 1_000,
    sizeKind: "data",
    steady: true,
    maxGrowth: 0.3,
    contenders: [
      { name: "statewright", role: "ours", growth: listDoublings(250), open: openStatewright },
      ...(langgraph === undefined ? [] : [createPeerContender(langgraph)]),
      { name: "row of JSON, read and parsed", role: "limit", open: openBareRows },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 1.25 }],
  };
}

interface OpenedStore {
  readonly createThread: (thread: string) => Promise<unknown>;
  readonly load: (thread: string) => Promise<unknown>;
  readonly close: () => unknown;
}

/** Creates a file for each number of threads at its first use, and opens the file again in each round. */
function openFiles(open: (path: string) => OpenedStore): Work {
  const files = new Map<number, ScratchFile>();
  return {
    run: async (threads) => {
      const path = files.get(threads)?.path ?? (await createFile(threads));
      const { load, close } = open(path);
      const loadCount = Math.min(loadsPerRound, threads);
      const stride = Math.floor(threads / loadCount);
      try {
        // Prepares the statements of the store without a read of a timed thread.
        await load(`thread-${threads - 1}`);
        return divideSample(
          await measureTime(async () => {
            for (let nth = 0; nth < loadCount; nth++) await load(`thread-${nth * stride}`);
          }),
          loadCount,
        );
      } finally {
        await close();
      }
    },
    close: () => {
      for (const file of files.values()) file.remove();
      return undefined;
    },
  };

  async function createFile(threads: number): Promise<string> {
    const file = createScratchFile("waiting.db");
    const { createThread, close } = open(file.path);
    for (let nth = 0; nth < threads; nth++) await createThread(`thread-${nth}`);
    await close();
    files.set(threads, file);
    return file.path;
  }
}

function divideSample({ cpuUs, wallUs }: Sample, times: number): Sample {
  return { cpuUs: cpuUs / times, wallUs: wallUs / times };
}

function openStatewright(): Work {
  return openFiles((path) => {
    const store = sqliteStore(path, { durability: "normal" });
    return {
      createThread: (thread) => run(interruptGraph, { store, thread, input: { log: [text] } }).result,
      load: (thread) => getState(interruptGraph, { store, thread }),
      close: () => store.close(),
    };
  });
}

function openBareRows(): Work {
  return openFiles((path) => {
    const db = new Database(path);
    db.pragma("journal_mode = WAL");
    db.pragma("synchronous = NORMAL");
    db.exec("CREATE TABLE IF NOT EXISTS states (thread TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT, WITHOUT ROWID");
    const insert = db.prepare("INSERT INTO states VALUES (?, ?)");
    const select = db.prepare<[string], string>("SELECT text FROM states WHERE thread = ?").pluck();
    return {
      createThread: async (thread) => insert.run(thread, JSON.stringify({ log: [text] })),
      load: async (thread): Promise<unknown> => JSON.parse(select.get(thread) ?? ""),
      close: () => {
        db.close();
      },
    };
  });
}

function createPeerContender({ StateGraph, Annotation, SqliteSaver, interrupt }: LangGraph): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: listDoublings(250),
    open: () =>
      openFiles((path) => {
        const saver = SqliteSaver.fromConnString(path);
        const graph = new StateGraph(Annotation.Root({ log: Annotation() }))
          .addNode("ask", () => ({ log: [`${interrupt("ok")}`] }))
          .addEdge("__start__", "ask")
          .addEdge("ask", "__end__")
          .compile({ checkpointer: saver });
        const createConfig = (thread: string): object => ({ durability: "sync", configurable: { thread_id: thread } });
        return {
          createThread: (thread) => graph.invoke({ log: [text] }, createConfig(thread)),
          load: (thread) => graph.getState(createConfig(thread)),
          close: () => {
            saver.db.close();
          },
        };
      }),
  };
}
