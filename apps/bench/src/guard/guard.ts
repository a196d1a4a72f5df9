/**
 * The guard against steps back: what a unit of six hot paths allocates, leaves on disk and takes of the time of a fixed
 * piece of plain JavaScript in the same run, beside what was recorded. None of the three depends on the machine.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpuUsage } from "node:process";
import { getHeapStatistics } from "node:v8";
import type { Case, Work } from "../case.ts";
import { allCases } from "../cases/all.ts";
import { noPeers } from "../peers/langgraph.ts";
import { plainWork } from "./plain-work.ts";

/** The case whose work is measured, and how many units a round has. */
const paths = {
  "a superstep": { id: "B1", size: 2_000 },
  "a saved superstep": { id: "B2", size: 1_000 },
  "a thread of 1,000 messages, loaded": { id: "B7", size: 1_000 },
  "a tool call": { id: "B18", size: 1_000 },
  "a partial result, told": { id: "B18 updates", size: 5_000 },
  "an agent turn": { id: "B14", size: 200 },
} as const;

/** What one unit of a path needs. */
export interface Cost {
  /** Bytes of JavaScript's heap that were taken, whether or not they were given back. */
  readonly allocated: number;
  /** CPU time, in units of {@link plainWork}. */
  readonly cpu: number;
  /** Bytes left on disk. */
  readonly bytes?: number;
}

export type Costs = Readonly<Record<string, Cost>>;

/** How much more than what was recorded is a step back: CPU time is the one that other work on the machine disturbs. */
const margins = { allocated: 1.15, bytes: 1.1, cpu: 2 } as const;

const rounds = 7;
const warmUps = 3;
const recorded = new URL("../../guard.json", import.meta.url);

/** `npm run bench -- guard [--write]`; gives the exit code. */
export async function runGuard(args: readonly string[]): Promise<number> {
  const now = await measurePaths(rounds);
  if (args.includes("--write")) {
    writeFileSync(recorded, `${JSON.stringify(now, null, 2)}\n`);
    return 0;
  }
  const before: Costs = JSON.parse(readFileSync(recorded, "utf8"));
  process.stdout.write(`${table(now, before)}\n`);
  const found = stepsBack(now, before);
  for (const line of found) process.stderr.write(`bench: ${line}\n`);
  return found.length > 0 ? 1 : 0;
}

/** Measure every path, each in turns with the plain work. */
export async function measurePaths(times: number, shrink = 1): Promise<Costs> {
  const cases = new Map(allCases(noPeers).map((each) => [each.id, each]));
  const costs: Record<string, Cost> = {};
  for (const [name, { id, size }] of Object.entries(paths)) {
    const found = cases.get(id);
    if (found === undefined) throw new Error(`there is no case ${id}`);
    costs[name] = await measurePath(found, Math.ceil(size / shrink), times);
  }
  return costs;
}

async function measurePath({ contenders, sizeOf }: Case, size: number, times: number): Promise<Cost> {
  const ours = contenders.find(({ role }) => role === "ours");
  if (ours === undefined) throw new Error("the case has no work of ours");
  const work = await ours.open();
  const units = sizeOf === "data" ? 1 : size;
  const least = {
    allocated: Number.POSITIVE_INFINITY,
    cpuUs: Number.POSITIVE_INFINITY,
    plainUs: Number.POSITIVE_INFINITY,
  };
  for (let round = 1 - warmUps; round <= times; round++) {
    const plainUs = cpuOf(plainWork);
    const { allocated, cpuUs } = await take(work, size);
    if (round < 1) continue;
    least.allocated = Math.min(least.allocated, allocated / units);
    least.cpuUs = Math.min(least.cpuUs, cpuUs / units);
    least.plainUs = Math.min(least.plainUs, plainUs);
  }
  const left = work.bytes?.();
  const closed = await work.close?.();
  const bytes = left === undefined ? closed : left / units;
  return {
    allocated: Math.round(least.allocated),
    cpu: Number((least.cpuUs / least.plainUs).toPrecision(3)),
    ...(bytes === undefined ? {} : { bytes: Math.round(bytes) }),
  };
}

async function take(work: Work, size: number): Promise<{ readonly allocated: number; readonly cpuUs: number }> {
  const before = allocatedBytes();
  const cpu = cpuUsage();
  const own = await work.run(size);
  const { user, system } = cpuUsage(cpu);
  const allocated = allocatedBytes() - before;
  return { allocated, cpuUs: own?.cpuUs ?? user + system };
}

/** Bytes that were allocated since the process began; the types of Node do not know the figure yet. */
function allocatedBytes(): number {
  const bytes = new Map<string, number>(Object.entries(getHeapStatistics())).get("total_allocated_bytes");
  if (bytes === undefined) throw new Error("this Node does not count what is allocated: use that of the repository");
  return bytes;
}

function cpuOf(work: () => void): number {
  const before = cpuUsage();
  work();
  const { user, system } = cpuUsage(before);
  return user + system;
}

/** What is more than its margin above what was recorded, in words; a path that was not recorded is one of them. */
export function stepsBack(now: Costs, before: Costs): readonly string[] {
  return Object.entries(now).flatMap(([name, cost]) => {
    const was = before[name];
    if (was === undefined) return [`${name} was not recorded: npm run bench -- guard --write`];
    return (["allocated", "bytes", "cpu"] as const).flatMap((what) => {
      const [is, recordedAs] = [cost[what] ?? 0, was[what] ?? 0];
      if (is <= recordedAs * margins[what]) return [];
      const times = (is / recordedAs).toFixed(2);
      return [
        `${name}: ${words[what]} is ${times} times what was recorded (${is}, was ${recordedAs}), at most ${margins[what]} is right`,
      ];
    });
  });
}

const words = {
  allocated: "what it allocates",
  bytes: "what it leaves on disk",
  cpu: "its CPU time beside plain work",
} as const;

function table(now: Costs, before: Costs): string {
  const rows = Object.entries(now).map(([name, { allocated, bytes, cpu }]) => {
    const was = before[name];
    const shown = (is: number | undefined, recordedAs: number | undefined): string =>
      is === undefined ? "" : `${is} (${recordedAs ?? "-"})`;
    return [name, shown(allocated, was?.allocated), shown(bytes, was?.bytes), shown(cpu, was?.cpu)];
  });
  const all = [["a unit, and as recorded", "bytes allocated", "bytes on disk", "CPU in plain work"], ...rows];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
