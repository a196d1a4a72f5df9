/**
 * A process under load, alone with its memory. `active`: so many threads at work at the same time, each step saved and
 * waited for. `parked`: so many runs that wait for a person. Arguments: which, how many, a file. Prints what it measured.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";
import Database from "better-sqlite3";
import { defineGraph, defineState, END, list, resume, route, run, START, type Store, sqliteStore } from "statewright";
import * as z from "zod";
import { settledHeap } from "../collector.ts";
import { asking } from "../interrupt-graph.ts";
import { spread } from "../measure.ts";
import type { Active, Parked } from "./load.ts";

const stepsOfThread = 20;
const text = "s".repeat(200);

const working = defineGraph({ name: "working", state: defineState({ log: list(z.string()) }) })
  .nodes({
    work: async () => {
      await pause(5);
      return { log: [text] };
    },
  })
  .edges({ [START]: "work", work: route(["work", END], ({ log }) => (log.length < stepsOfThread ? "work" : END)) });

async function active(threads: number, store: Store): Promise<Active> {
  const heapBefore = await settledHeap();
  const rssBefore = process.memoryUsage().rss;
  let mostRss = 0;
  let mostHeap = 0;
  const sampling = setInterval(() => {
    const { rss, heapUsed } = process.memoryUsage();
    mostRss = Math.max(mostRss, rss);
    mostHeap = Math.max(mostHeap, heapUsed);
  }, 20);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const wall = performance.now();
  const cpu = process.cpuUsage();
  const results: Promise<{ readonly status: string }>[] = [];
  // They come one after the other, as requests do: a thousand starts in one turn would be one long turn.
  for (let nth = 0; nth < threads; nth++) {
    results.push(run(working, { store, thread: `t${nth}`, input: {} }).result);
    if (nth % 10 === 9) await new Promise(setImmediate);
  }
  const ends = await Promise.all(results);
  const { user, system } = process.cpuUsage(cpu);
  const seconds = (performance.now() - wall) / 1_000;
  delay.disable();
  clearInterval(sampling);
  return {
    threads,
    done: ends.filter(({ status }) => status === "done").length,
    supersteps: threads * stepsOfThread,
    seconds,
    cpuSeconds: (user + system) / 1_000_000,
    loopDelayMs: { p99: delay.percentile(99) / 1_000_000, most: delay.max / 1_000_000 },
    rawCommitMs: rawCommits(),
    rssBeforeMb: rssBefore / 2 ** 20,
    mostRssMb: mostRss / 2 ** 20,
    mostHeapMb: (mostHeap - heapBefore) / 2 ** 20,
  };
}

/** What the disk takes for a transaction of one row, at the same durability. */
function rawCommits(): Active["rawCommitMs"] {
  const db = new Database(`${file}-raw`);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("CREATE TABLE t (n INTEGER PRIMARY KEY)");
  const add = db.prepare("INSERT INTO t DEFAULT VALUES");
  const tookMs = Array.from({ length: 50 }, () => {
    const began = performance.now();
    add.run();
    return performance.now() - began;
  });
  db.close();
  const { median, most } = spread(tookMs);
  return { median, most };
}

const resumed = 500;

async function parked(runs: number, open: () => Store): Promise<Parked> {
  let store = open();
  for (let nth = 0; nth < resumed; nth++) await run(asking, { store, thread: `warm${nth}`, input: {} }).result;
  const before = await settledHeap();
  for (let nth = 0; nth < runs; nth++) await run(asking, { store, thread: `t${nth}`, input: {} }).result;
  const heapBytes = (await settledHeap()) - before;
  store.close();
  store = open();
  const samples = [];
  for (let nth = 0; nth < Math.min(resumed, runs); nth++) {
    const cpu = process.cpuUsage();
    await resume(asking, { store, thread: `t${nth}`, answers: { ok: true } }).result;
    const { user, system } = process.cpuUsage(cpu);
    samples.push((user + system) / 1_000);
  }
  store.close();
  return { runs, heapBytes, resumeMs: spread(samples).median };
}

const [which, count = "0", file = ""] = process.argv.slice(2);
const open = () => sqliteStore(file, { durability: which === "active" ? "full" : "normal" });
process.stdout.write(
  JSON.stringify(which === "active" ? await active(Number(count), open()) : await parked(Number(count), open)),
);
process.exit();
