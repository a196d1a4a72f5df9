/**
 * Regression guard: allocation, bytes on disk and relative CPU time per unit of six hot paths, compared with recorded
 * values. CPU time is relative to a fixed piece of plain JavaScript in the same process. None of the three depends on
 * the machine. The counts of SQL statements have limits of their own.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpuUsage } from "node:process";
import { getHeapStatistics } from "node:v8";
import type { Case, Work } from "../case.ts";
import { createCases } from "../cases/all.ts";
import { noPeers } from "../peers/langgraph.ts";
import {
  countLimits,
  countRequests,
  countStatements,
  findCountRegressions,
  requestLimits,
} from "./count-statements.ts";
import { runPlainWork } from "./plain-work.ts";

/** Case of each path, and the number of units per round. */
const paths = {
  "a superstep": { id: "B1", size: 2_000 },
  "a saved superstep": { id: "B2", size: 1_000 },
  "a thread of 1,000 messages, loaded": { id: "B7", size: 1_000 },
  "a tool call": { id: "B18", size: 1_000 },
  "a partial result, emitted": { id: "B18 updates", size: 5_000 },
  "an agent turn": { id: "B14", size: 200 },
} as const;

/** Cost of one unit of a path. */
export interface Cost {
  /** Allocated bytes of the JavaScript heap, including collected garbage. */
  readonly allocated: number;
  /** CPU time, in units of {@link runPlainWork}. */
  readonly cpu: number;
  /** Bytes on disk. */
  readonly bytes?: number;
}

export type Costs = Readonly<Record<string, Cost>>;

/**
 * Factors above the recorded values that count as a regression. CPU time has the largest factor, because other work
 * on the machine disturbs it.
 */
const margins = { allocated: 1.15, bytes: 1.1, cpu: 2 } as const;

const rounds = 7;
/** Until the compiler has optimised the path: fewer make the allocated bytes depend on the load of the machine. */
const warmUps = 15;
const recordFile = new URL("../../guard.json", import.meta.url);

/** Runs `npm run bench -- guard [--write]`. Returns the exit code. */
export async function runGuard(args: readonly string[]): Promise<number> {
  const current = await measurePaths(rounds);
  if (args.includes("--write")) {
    writeFileSync(recordFile, `${JSON.stringify(current, null, 2)}\n`);
    return 0;
  }
  const recordedCosts: Costs = JSON.parse(readFileSync(recordFile, "utf8"));
  process.stdout.write(`${formatTable(current, recordedCosts)}\n`);
  const regressions = [
    ...findRegressions(current, recordedCosts),
    // Last, since the wrapped statements would slow the paths.
    ...findCountRegressions(await countStatements(), countLimits),
    ...findCountRegressions(await countRequests(100), requestLimits),
  ];
  for (const line of regressions) process.stderr.write(`bench: ${line}\n`);
  return regressions.length > 0 ? 1 : 0;
}

/** Measures every path, in alternation with the plain work. */
export async function measurePaths(times: number, shrink = 1): Promise<Costs> {
  const cases = new Map(createCases(noPeers).map((each) => [each.id, each]));
  const costs: Record<string, Cost> = {};
  for (const [name, { id, size }] of Object.entries(paths)) {
    const benchCase = cases.get(id);
    if (benchCase === undefined) throw new Error(`guard: expected the id of a case, got ${id}. Fix the list of paths.`);
    costs[name] = await measurePath(benchCase, Math.ceil(size / shrink), times);
  }
  return costs;
}

async function measurePath({ contenders, sizeKind: kind }: Case, size: number, times: number): Promise<Cost> {
  const ours = contenders.find(({ role }) => role === "ours");
  if (ours === undefined) throw new Error('guard: expected a contender with the role "ours", got none');
  const work = await ours.open();
  const units = kind === "data" ? 1 : size;
  const best = {
    allocated: Number.POSITIVE_INFINITY,
    cpuUs: Number.POSITIVE_INFINITY,
    plainUs: Number.POSITIVE_INFINITY,
  };
  for (let round = 1 - warmUps; round <= times; round++) {
    const plainUs = measureCpu(runPlainWork);
    const { allocated, cpuUs } = await measureRound(work, size);
    if (round < 1) continue;
    best.allocated = Math.min(best.allocated, allocated / units);
    best.cpuUs = Math.min(best.cpuUs, cpuUs / units);
    best.plainUs = Math.min(best.plainUs, plainUs);
  }
  const roundBytes = work.getBytes?.();
  const closeBytes = await work.close?.();
  const bytes = roundBytes === undefined ? closeBytes : roundBytes / units;
  return {
    allocated: Math.round(best.allocated),
    cpu: Number((best.cpuUs / best.plainUs).toPrecision(3)),
    ...(bytes === undefined ? {} : { bytes: Math.round(bytes) }),
  };
}

async function measureRound(work: Work, size: number): Promise<{ readonly allocated: number; readonly cpuUs: number }> {
  const before = getAllocatedBytes();
  const cpu = cpuUsage();
  const sample = await work.run(size);
  const { user, system } = cpuUsage(cpu);
  const allocated = getAllocatedBytes() - before;
  return { allocated, cpuUs: sample?.cpuUs ?? user + system };
}

/** Returns the bytes allocated since the start of the process. The types of Node do not include this figure yet. */
function getAllocatedBytes(): number {
  const bytes = new Map<string, number>(Object.entries(getHeapStatistics())).get("total_allocated_bytes");
  if (bytes === undefined)
    throw new Error(
      "guard: expected a Node that counts allocated bytes, got another version. Use the Node version of the repository.",
    );
  return bytes;
}

function measureCpu(work: () => void): number {
  const before = cpuUsage();
  work();
  const { user, system } = cpuUsage(before);
  return user + system;
}

/** Returns a sentence for each value above its margin, and for each path without recorded values. */
export function findRegressions(current: Costs, recordedCosts: Costs): readonly string[] {
  return Object.entries(current).flatMap(([name, cost]) => {
    const recordedCost = recordedCosts[name];
    if (recordedCost === undefined) return [`${name}: no recorded values. Run npm run bench -- guard --write.`];
    return (["allocated", "bytes", "cpu"] as const).flatMap((metric) => {
      const [currentValue, recordedValue] = [cost[metric] ?? 0, recordedCost[metric] ?? 0];
      if (currentValue <= recordedValue * margins[metric]) return [];
      const times = (currentValue / recordedValue).toFixed(2);
      return [
        `${name}: ${metricLabels[metric]}: ${times} times the recorded value (${currentValue}, recorded ${recordedValue}), expected at most ${margins[metric]} times`,
      ];
    });
  });
}

const metricLabels = {
  allocated: "allocated bytes",
  bytes: "bytes on disk",
  cpu: "CPU time relative to plain work",
} as const;

function formatTable(current: Costs, recordedCosts: Costs): string {
  const rows = Object.entries(current).map(([name, { allocated, bytes, cpu }]) => {
    const recordedCost = recordedCosts[name];
    const formatCell = (currentValue: number | undefined, recordedValue: number | undefined): string =>
      currentValue === undefined ? "" : `${currentValue} (${recordedValue ?? "-"})`;
    return [
      name,
      formatCell(allocated, recordedCost?.allocated),
      formatCell(bytes, recordedCost?.bytes),
      formatCell(cpu, recordedCost?.cpu),
    ];
  });
  const all = [["per unit (recorded)", "bytes allocated", "bytes on disk", "CPU relative to plain work"], ...rows];
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
