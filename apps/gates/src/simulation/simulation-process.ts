/**
 * A process that lives through simulations: seeds in groups, every so many groups one, until the seeds or the time are over.
 * Arguments: first seed, end, this process's number, how many there are, milliseconds. Prints one line of JSON a group.
 */
import process from "node:process";
import { oneSimulation } from "./run-simulation.ts";
import { sqliteStores } from "./sqlite-stores.ts";

/** What one group came to. */
export interface GroupReport {
  readonly seeds: number;
  readonly deaths: number;
  readonly events: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly ends: Readonly<Record<string, number>>;
  readonly bad: readonly { readonly seed: number; readonly violations: readonly string[] }[];
}

/** Seeds in a group: they share programs, and a group is what a process takes at a time. */
export const groupSize = 40;

/** Every so many seeds one runs over SQLite, where one process has the file at a time. */
const sqliteEvery = 50;

/** Live through one group. */
export async function oneGroup(from: number, to: number): Promise<GroupReport> {
  const faults: Record<string, number> = {};
  const ends: Record<string, number> = {};
  const bad: { readonly seed: number; readonly violations: readonly string[] }[] = [];
  let deaths = 0;
  let events = 0;
  for (let seed = from; seed < to; seed++) {
    const story = await simulated(seed);
    deaths += story.deaths;
    events += story.events;
    ends[story.end] = (ends[story.end] ?? 0) + 1;
    for (const [kind, count] of Object.entries(story.faults)) faults[kind] = (faults[kind] ?? 0) + count;
    if (story.violations.length > 0) bad.push({ seed, violations: story.violations });
  }
  return { seeds: to - from, deaths, events, faults, ends, bad };
}

/** The simulation of a seed, over the store that is its own. */
export function simulated(seed: number, trace?: (line: string) => void) {
  const told = trace === undefined ? {} : { trace };
  if (seed % sqliteEvery !== sqliteEvery - 1) return oneSimulation(seed, told);
  const faults = ["kill", "die", "store", "outside", "clock", "drain", "cancel"] as const;
  return oneSimulation(seed, { stores: sqliteStores, faults, ...told });
}

if (process.argv[1] === import.meta.filename) {
  const [from = 0, to = 0, mine = 0, all = 1, ms = 0] = process.argv.slice(2).map(Number);
  const began = performance.now();
  for (let group = mine; from + group * groupSize < to; group += all) {
    if (ms > 0 && performance.now() - began > ms) break;
    const first = from + group * groupSize;
    const report = await oneGroup(first, Math.min(first + groupSize, to));
    process.stdout.write(`${JSON.stringify(report)}\n`);
  }
}
