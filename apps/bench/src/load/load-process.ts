/**
 * Process under load, with its own memory. `active`: concurrent threads; each superstep waits and is saved. `waiting`:
 * runs at an interrupt. Arguments: kind, count, file. Prints the measurements as JSON.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import Database from "better-sqlite3";
import {
  channel,
  defineGraph,
  defineState,
  END,
  resume,
  route,
  run,
  START,
  type Store,
  sqliteStore,
} from "statewright";
import * as z from "zod";
import { measureHeap } from "../collector.ts";
import { interruptGraph } from "../interrupt-graph.ts";
import { computeSpread } from "../measure.ts";
import type { ActiveLoad, WaitingLoad } from "./load.ts";

const stepsPerThread = 20;
const text = "s".repeat(200);

const workingGraph = defineGraph({ name: "working", state: defineState({ log: channel.list(z.string()) }) })
  .nodes({
    work: async () => {
      await pause(5);
      return { log: [text] };
    },
  })
  .edges({ [START]: "work", work: route(["work", END], ({ log }) => (log.length < stepsPerThread ? "work" : END)) });

async function measureActive(threads: number, store: Store): Promise<ActiveLoad> {
  const heapBefore = await measureHeap();
  const rssBefore = process.memoryUsage().rss;
  let maxRss = 0;
  let maxHeap = 0;
  const sampling = setInterval(() => {
    const { rss, heapUsed } = process.memoryUsage();
    maxRss = Math.max(maxRss, rss);
    maxHeap = Math.max(maxHeap, heapUsed);
  }, 20);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const wall = performance.now();
  const cpu = process.cpuUsage();
  const results: Promise<{ readonly status: string }>[] = [];
  // Starts arrive in small groups, like requests: a thousand starts in one turn would block the event loop.
  for (let nth = 0; nth < threads; nth++) {
    results.push(run(workingGraph, { store, thread: `t${nth}`, input: {} }).result);
    if (nth % 10 === 9) await new Promise(setImmediate);
  }
  const finished = await Promise.all(results);
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - wall) / 1_000;
  delay.disable();
  clearInterval(sampling);
  return {
    threads,
    done: finished.filter(({ status }) => status === "done").length,
    supersteps: threads * stepsPerThread,
    seconds,
    cpuSeconds: (user + system) / 1_000_000,
    loopDelayMs: { p99: delay.percentile(99) / 1_000_000, max: delay.max / 1_000_000 },
    rawCommitMs: measureRawCommits(),
    rssBeforeMb: rssBefore / 2 ** 20,
    maxRssMb: maxRss / 2 ** 20,
    maxHeapMb: (maxHeap - heapBefore) / 2 ** 20,
  };
}

/** Measures a transaction of one row at the same durability. */
function measureRawCommits(): ActiveLoad["rawCommitMs"] {
  const db = new Database(`${file}-raw`);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("CREATE TABLE t (n INTEGER PRIMARY KEY)");
  const add = db.prepare("INSERT INTO t DEFAULT VALUES");
  const durationsMs = Array.from({ length: 50 }, () => {
    const startedAt = performance.now();
    add.run();
    return performance.now() - startedAt;
  });
  db.close();
  const { median, max } = computeSpread(durationsMs);
  return { median, max };
}

const resumeCount = 500;

async function measureWaiting(runs: number, open: () => Store): Promise<WaitingLoad> {
  let store = open();
  for (let nth = 0; nth < resumeCount; nth++)
    await run(interruptGraph, { store, thread: `warm${nth}`, input: {} }).result;
  const heapBefore = await measureHeap();
  for (let nth = 0; nth < runs; nth++) await run(interruptGraph, { store, thread: `t${nth}`, input: {} }).result;
  const heapBytes = (await measureHeap()) - heapBefore;
  await store.close();
  store = open();
  const samples = [];
  for (let nth = 0; nth < Math.min(resumeCount, runs); nth++) {
    const cpu = process.cpuUsage();
    await resume(interruptGraph, { store, thread: `t${nth}`, answers: { ok: true } }).result;
    const { user, system } = process.cpuUsage(cpu);
    samples.push((user + system) / 1_000);
  }
  await store.close();
  return { runs, heapBytes, resumeMs: computeSpread(samples).median };
}

const [which, count = "0", file = ""] = process.argv.slice(2);
const open = () => sqliteStore(file, { durability: which === "active" ? "full" : "normal" });
process.stdout.write(
  JSON.stringify(
    which === "active" ? await measureActive(Number(count), open()) : await measureWaiting(Number(count), open),
  ),
);
process.exit();
