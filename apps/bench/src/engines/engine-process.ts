/**
 * Process of B20: runs on new threads of a shared file, in an engine, or the same number of raw transactions. Arguments:
 * kind, file, a prefix of its threads. Each message has a number of runs; the response is their CPU time.
 */
import process from "node:process";
import Database from "better-sqlite3";
import { defineGraph, defineState, END, engine, START, sqliteStore } from "statewright";
import * as z from "zod";

const [kind, path = "", prefix] = process.argv.slice(2);

const counter = defineGraph({ name: "counter", state: defineState({ n: z.number() }) })
  .nodes({ count: ({ n }) => ({ n: n + 1 }) })
  .edges({ [START]: "count", count: END });

interface Worker {
  readonly run: (thread: string) => Promise<unknown>;
}

async function openEngine(): Promise<Worker> {
  const host = engine({ store: sqliteStore(path, { durability: "normal" }), graphs: [counter] });
  await host.start();
  return { run: (thread) => host.run(counter, { thread, input: { n: 0 } }).result };
}

/** A run of one superstep takes two transactions. */
function openRaw(): Worker {
  const db = new Database(path, { timeout: 60_000 });
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = NORMAL");
  db.exec("CREATE TABLE IF NOT EXISTS raw_rows (key INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT");
  const insert = db.prepare("INSERT INTO raw_rows (text) VALUES (?)");
  const text = "x".repeat(300);
  return {
    run: async () => {
      for (let nth = 0; nth < 2; nth++) db.transaction(() => insert.run(text)).immediate();
    },
  };
}

const worker = kind === "raw" ? openRaw() : await openEngine();
let runs = 0;

process.on("message", async (count: number) => {
  const before = process.cpuUsage();
  for (let nth = 0; nth < count; nth++) await worker.run(`${prefix}-${runs++}`);
  const { user, system } = process.cpuUsage(before);
  process.send?.(user + system);
});
process.on("disconnect", () => process.exit());
process.send?.(0);
