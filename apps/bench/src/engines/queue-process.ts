/**
 * Process of B20 queue and B20 slots: an engine for queued runs of a shared file. Arguments: the file, the runs at the
 * same time, the milliseconds that each node waits. The message `start` starts the engine, `stop` stops it; the response
 * to `stop` is its CPU time.
 */
import process from "node:process";
import { engine, sqliteStore } from "statewright";
import { createQueuedCounter } from "./queued-counter.ts";

const [path = "", concurrency, waitMs] = process.argv.slice(2);
const host = engine({
  store: sqliteStore(path, { durability: "normal" }),
  graphs: [createQueuedCounter(Number(waitMs))],
  concurrency: Number(concurrency),
});
let before = process.cpuUsage();

process.on("message", async (message: "start" | "stop") => {
  if (message === "start") {
    before = process.cpuUsage();
    await host.start();
    return;
  }
  await host.stop();
  const { user, system } = process.cpuUsage(before);
  process.send?.(user + system);
});
process.on("disconnect", () => process.exit());
process.send?.(0);
