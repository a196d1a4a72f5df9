/** B21: opening a store, with an existing and with a new file, and a run from a store that was opened for it. */
import Database from "better-sqlite3";
import { run, sqliteStore } from "statewright";
import { type Case, type Contender, listDoublings, type Work } from "../case.ts";
import { measureTime } from "../measure.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import { createScratchFile, createScratchFolder, type ScratchFile } from "../scratch-files.ts";
import { counter, createPeerCounter, runPeerCounter } from "./superstep.ts";

/** Openings per sample: one opening is too short for a timer. */
const opensPerSample = 20;

export function createOpenStoreCases({ langgraph }: Peers): readonly Case[] {
  return [createExistingFileCase(langgraph), createNewFileCase(langgraph), createFirstAppendCase(langgraph)];
}

function createExistingFileCase(langgraph: LangGraph | undefined): Case {
  return {
    id: "B21",
    title: "opening and closing a store whose file has 1,000 threads",
    unit: "opening",
    budget: { cpuUs: 3_000, text: "3 ms, independent of the number of threads" },
    disk: true,
    size: 1_000,
    sizeKind: "data",
    steady: true,
    maxGrowth: 0.3,
    contenders: [
      { name: "statewright", role: "ours", growth: listDoublings(500), open: () => openFiles(fillFile, openAndClose) },
      ...(langgraph === undefined ? [] : [createPeerContender(langgraph)]),
      { name: "better-sqlite3, one query", role: "limit", open: () => openFiles(fillFile, (path) => openRaw(path)) },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 5 }],
  };
}

function createNewFileCase(langgraph: LangGraph | undefined): Case {
  return {
    id: "B21 new",
    title: "creating and closing a store in a new file",
    unit: "opening",
    budget: { cpuUs: 3_000, text: "3 ms; less than the same tables in better-sqlite3" },
    disk: true,
    size: opensPerSample,
    steady: true,
    contenders: [
      { name: "statewright", role: "ours", open: () => openInFolder((path) => sqliteStore(path).close()) },
      ...(langgraph === undefined
        ? []
        : [
            {
              name: "LangGraph.js",
              role: "peer",
              open: () => openInFolder((path) => readWithPeer(langgraph, path)),
            } as const,
          ]),
      { name: "better-sqlite3, one table", role: "limit", open: () => openInFolder(async (path) => createRaw(path)) },
      { name: sameTablesName, role: "limit", open: openSameTables },
    ],
    checks: [{ subject: "statewright", baseline: sameTablesName, measure: "cpu", max: 1 }],
  };
}

const sameTablesName = "better-sqlite3, the same tables in one transaction";

/** Creates the tables of a store with the same page size, log and waits for the disk. */
async function openSameTables(): Promise<Work> {
  const file = createScratchFile("tables.db");
  await sqliteStore(file.path).close();
  const db = new Database(file.path);
  const pageBytes = db.pragma("page_size", { simple: true });
  // SQLite and the virtual table create tables of their own.
  const statements = db
    .prepare<[], string>(
      "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*' AND name NOT GLOB 'long_term_words_*'",
    )
    .pluck()
    .all();
  db.close();
  file.remove();
  return openInFolder(async (path) => {
    const created = new Database(path);
    created.pragma(`page_size = ${pageBytes}`);
    created.pragma("journal_mode = WAL");
    created.pragma("synchronous = FULL");
    created.exec(`BEGIN IMMEDIATE; ${statements.join("; ")}; COMMIT`);
    created.close();
  });
}

function createFirstAppendCase(langgraph: LangGraph | undefined): Case {
  return {
    id: "B21 run",
    title: "opening a store, one run of one superstep on a new thread, and closing the store; synchronous=NORMAL",
    unit: "run",
    budget: { cpuUs: 6_000, text: "none in the design" },
    disk: true,
    size: opensPerSample,
    steady: true,
    contenders: [
      { name: "statewright", role: "ours", open: openAppends },
      ...(langgraph === undefined ? [] : [createPeerAppends(langgraph)]),
      { name: "better-sqlite3, one transaction", role: "limit", open: openRawAppends },
    ],
  };
}

async function openAndClose(path: string): Promise<void> {
  await sqliteStore(path, { durability: "normal" }).close();
}

/** Creates a file with one table, with a store's waits for the disk. */
function createRaw(path: string): void {
  openRaw(path, "FULL");
}

function openRaw(path: string, synchronous: "FULL" | "NORMAL" = "NORMAL"): void {
  const db = new Database(path);
  db.pragma("journal_mode = WAL");
  db.pragma(`synchronous = ${synchronous}`);
  db.exec("CREATE TABLE IF NOT EXISTS raw_rows (key INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT");
  db.prepare("SELECT max(key) FROM raw_rows").get();
  db.close();
}

/** Creates a file for each number of threads at its first use, and opens it several times in each round. */
function openFiles(fill: (path: string, threads: number) => Promise<void>, open: (path: string) => unknown): Work {
  const files = new Map<number, ScratchFile>();
  return {
    run: async (threads) => {
      const file = files.get(threads) ?? createScratchFile("threads.db");
      if (!files.has(threads)) await fill(file.path, threads);
      files.set(threads, file);
      const { cpuUs, wallUs } = await measureTime(async () => {
        for (let nth = 0; nth < opensPerSample; nth++) await open(file.path);
      });
      return { cpuUs: cpuUs / opensPerSample, wallUs: wallUs / opensPerSample };
    },
    close: () => {
      for (const file of files.values()) file.remove();
      return undefined;
    },
  };
}

/** Fills a file with threads. The bare opening adds its table to a file of its own. */
async function fillFile(path: string, threads: number): Promise<void> {
  const store = sqliteStore(path, { durability: "normal" });
  for (let nth = 0; nth < threads; nth++)
    await run(counter, { input: { n: 0, limit: 1 }, store, thread: `thread-${nth}` }).result;
  await store.close();
}

function openInFolder(open: (path: string) => Promise<unknown>): Work {
  return {
    run: async (size) => {
      const folder = createScratchFolder();
      const sample = await measureTime(async () => {
        for (let nth = 0; nth < size; nth++) await open(`${folder.path}/${nth}.db`);
      });
      folder.remove();
      return sample;
    },
  };
}

function openAppends(): Work {
  const file = createScratchFile("ours.db");
  let runs = 0;
  return {
    run: async (size) => {
      for (let nth = 0; nth < size; nth++) {
        const store = sqliteStore(file.path, { durability: "normal" });
        await run(counter, { input: { n: 0, limit: 1 }, store, thread: `thread-${runs++}` }).result;
        await store.close();
      }
      return undefined;
    },
    close: () => {
      file.remove();
      return undefined;
    },
  };
}

function openRawAppends(): Work {
  const file = createScratchFile("raw.db");
  return {
    run: (size) => {
      for (let nth = 0; nth < size; nth++) {
        const db = new Database(file.path);
        db.pragma("journal_mode = WAL");
        db.pragma("synchronous = NORMAL");
        db.exec("CREATE TABLE IF NOT EXISTS raw_rows (key INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT");
        db.prepare("INSERT INTO raw_rows (text) VALUES (?)").run("x".repeat(300));
        db.close();
      }
      return undefined;
    },
    close: () => {
      file.remove();
      return undefined;
    },
  };
}

function createPeerContender(langgraph: LangGraph): Contender {
  const fill = async (path: string, threads: number): Promise<void> => {
    const saver = langgraph.SqliteSaver.fromConnString(path);
    const graph = createPeerCounter(langgraph, saver);
    for (let nth = 0; nth < threads; nth++) await runPeerCounter(graph, 1, `thread-${nth}`);
    saver.db.close();
  };
  return {
    name: "LangGraph.js",
    role: "peer",
    size: 200,
    open: () => openFiles(fill, (path) => readWithPeer(langgraph, path)),
  };
}

/** LangGraph.js creates its tables with the first read. */
async function readWithPeer(langgraph: LangGraph, path: string): Promise<void> {
  const saver = langgraph.SqliteSaver.fromConnString(path);
  await createPeerCounter(langgraph, saver).getState({ configurable: { thread_id: "none" } });
  saver.db.close();
}

function createPeerAppends(langgraph: LangGraph): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    open: () => {
      const file = createScratchFile("theirs.db");
      let runs = 0;
      return {
        run: async (size) => {
          for (let nth = 0; nth < size; nth++) {
            const saver = langgraph.SqliteSaver.fromConnString(file.path);
            await runPeerCounter(createPeerCounter(langgraph, saver), 1, `thread-${runs++}`);
            saver.db.close();
          }
          return undefined;
        },
        close: () => {
          file.remove();
          return undefined;
        },
      };
    },
  };
}
