/**
 * Child process that runs simulations: seeds in groups, one of every `count` groups, until the last seed or the time
 * limit. Arguments: first seed, end, index of this process, number of processes, milliseconds. Prints one JSON line
 * per group.
 */
import process from "node:process";
import { runSimulation } from "./run-simulation.ts";
import { createSqliteStores } from "./sqlite-stores.ts";

/** Result of one group. */
export interface GroupReport {
  readonly seeds: number;
  readonly deaths: number;
  readonly events: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly ends: Readonly<Record<string, number>>;
  readonly failed: readonly { readonly seed: number; readonly violations: readonly string[] }[];
}

/** Seeds per group. Seeds of a group share programs. */
export const groupSize = 40;

/** One of this many seeds uses a SQLite store, with a single process at a time. */
const sqliteEvery = 50;

/** Runs one group. */
export async function runGroup(from: number, to: number): Promise<GroupReport> {
  const faults: Record<string, number> = {};
  const ends: Record<string, number> = {};
  const failed: { readonly seed: number; readonly violations: readonly string[] }[] = [];
  let deaths = 0;
  let events = 0;
  for (let seed = from; seed < to; seed++) {
    const report = await simulateSeed(seed);
    deaths += report.deaths;
    events += report.events;
    ends[report.end] = (ends[report.end] ?? 0) + 1;
    for (const [kind, count] of Object.entries(report.faults)) faults[kind] = (faults[kind] ?? 0) + count;
    if (report.violations.length > 0) failed.push({ seed, violations: report.violations });
  }
  return { seeds: to - from, deaths, events, faults, ends, failed };
}

/** Runs the simulation of a seed, with the store of the seed. */
export function simulateSeed(seed: number, trace?: (line: string) => void) {
  const traceOptions = trace === undefined ? {} : { trace };
  if (seed % sqliteEvery !== sqliteEvery - 1) return runSimulation(seed, traceOptions);
  const faults = ["kill", "die", "store", "external", "clock", "drain", "cancel"] as const;
  return runSimulation(seed, { stores: createSqliteStores, faults, ...traceOptions });
}

if (process.argv[1] === import.meta.filename) {
  const [from = 0, to = 0, mine = 0, all = 1, ms = 0] = process.argv.slice(2).map(Number);
  const began = performance.now();
  for (let group = mine; from + group * groupSize < to; group += all) {
    if (ms > 0 && performance.now() - began > ms) break;
    const first = from + group * groupSize;
    const report = await runGroup(first, Math.min(first + groupSize, to));
    process.stdout.write(`${JSON.stringify(report)}\n`);
  }
}
