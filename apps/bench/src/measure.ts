/**
 * Measuring: CPU time first, because it repeats on a busy machine, wall time second. Contenders take turns, round after
 * round, so that whatever the machine does meanwhile meets all of them; the median of the rounds counts.
 */
import { spawnSync } from "node:child_process";
import { cpuUsage } from "node:process";
import type { Case, Contender, Role } from "./case.ts";
import { type Runner, runHere } from "./runner.ts";

/** Time that some work took, in microseconds. CPU counts all threads of the process: the collector and the compiler too. */
export interface Sample {
  readonly cpuUs: number;
  readonly wallUs: number;
}

/** Median, least and most of the rounds. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** What one contender of a case needed for one unit of its work. */
export interface Measured {
  readonly name: string;
  readonly role: Role;
  /** Units in a round. */
  readonly size: number;
  readonly rounds: number;
  readonly cpuUs: Spread;
  readonly wallUs: Spread;
  readonly bytes: number | undefined;
  readonly growth: Growth | undefined;
  /** What else the work says of itself. */
  readonly notes?: string | undefined;
  /** A sentence that stands under the table. */
  readonly remark?: string | undefined;
}

/** CPU by the size of the work. An exponent of 1 is linear; the fit is of log CPU by log size. */
export interface Growth {
  readonly points: readonly Point[];
  readonly exponent: number;
  /** The same of the bytes that were left on disk, where they are counted. */
  readonly bytesExponent?: number;
}

interface Point {
  readonly size: number;
  readonly cpuUs: number;
  readonly bytes?: number | undefined;
}

export interface MeasureOptions {
  readonly rounds: number;
  /** A contender runs for so long before it is measured, in milliseconds: two rounds of a fast one are over before its code is compiled. */
  readonly warmUpMs: number;
  readonly growth: boolean;
  /** How a contender is put to work; in this process by default. */
  readonly open?: (contender: Contender) => Promise<Runner>;
}

const fewestWarmUps = 2;
const fewestRounds = 3;
/** A contender that has used this much is not asked for more than the fewest rounds; one whose round alone does has one. */
const patienceMs = 20_000;

/** Measure every contender of a case. */
export async function measureCase(
  { size, contenders, disk = false, sizeOf = "work", steady = false }: Case,
  { rounds, warmUpMs, growth, open = runHere }: MeasureOptions,
): Promise<readonly Measured[]> {
  const entrants: Entrant[] = [];
  for (const contender of contenders) entrants.push(enter(contender, await open(contender), contender.size ?? size));
  for (const entrant of entrants) await warmUp(entrant, warmUpMs, steady);
  for (let round = 0; round < rounds; round++) {
    for (const entrant of entrants) {
      if (entrant.samples.length >= entrant.fewest && entrant.usedMs > patienceMs) continue;
      if (disk) quietDisk();
      const sample = await entrant.runner.take(entrant.size, steady);
      entrant.usedMs += sample.wallUs / 1_000;
      entrant.samples.push(sample);
    }
  }
  const measured: Measured[] = [];
  for (const { contender, runner, size: inRound, samples } of entrants) {
    const units = sizeOf === "data" ? 1 : inRound;
    const { bytes, notes, remark } = await runner.look();
    const sizes = growth ? contender.growth : undefined;
    const grown = sizes === undefined ? undefined : await grow(runner, sizes, steady);
    const told = await runner.close();
    measured.push({
      name: contender.name,
      role: contender.role,
      size: inRound,
      rounds: samples.length,
      cpuUs: spread(samples.map(({ cpuUs }) => cpuUs / units)),
      wallUs: spread(samples.map(({ wallUs }) => wallUs / units)),
      bytes: bytes === undefined ? told : bytes / units,
      growth: grown,
      notes,
      remark,
    });
  }
  return measured;
}

interface Entrant {
  readonly contender: Contender;
  readonly runner: Runner;
  readonly size: number;
  readonly samples: Sample[];
  usedMs: number;
  /** Rounds that it has, however much it uses. */
  fewest: number;
}

function enter(contender: Contender, runner: Runner, size: number): Entrant {
  return { contender, runner, size, samples: [], usedMs: 0, fewest: fewestRounds };
}

async function warmUp(entrant: Entrant, warmUpMs: number, steady: boolean): Promise<void> {
  const until = performance.now() + warmUpMs;
  for (let round = 0; round < fewestWarmUps || performance.now() < until; round++) {
    const sample = await entrant.runner.take(entrant.size, steady);
    if (!isTooLong(sample)) continue;
    // Most of so long a round is warm: it is the one that counts.
    entrant.samples.push(sample);
    entrant.usedMs = Number.POSITIVE_INFINITY;
    entrant.fewest = 1;
    return;
  }
}

/** By its CPU time, so that what else the machine does decides nothing. */
function isTooLong({ cpuUs }: Sample): boolean {
  return cpuUs / 1_000 > patienceMs;
}

/** Have the system write out what waits; where there is no such command, the rounds have to do. */
function quietDisk(): void {
  spawnSync("sync", { stdio: "ignore" });
}

async function grow(runner: Runner, sizes: readonly number[], steady: boolean): Promise<Growth> {
  const points = [];
  for (const size of sizes) {
    const samples = [];
    for (let round = 0; round < fewestRounds; round++) {
      const sample = await runner.take(size, steady);
      samples.push(sample.cpuUs);
      if (isTooLong(sample)) break;
    }
    points.push({ size, cpuUs: spread(samples).median, bytes: (await runner.look()).bytes });
  }
  const sized = points.flatMap(({ size, bytes }) => (bytes === undefined ? [] : [[size, bytes] as const]));
  return {
    points,
    exponent: fitExponent(points.map(({ size, cpuUs }) => [size, cpuUs])),
    ...(sized.length === points.length && { bytesExponent: fitExponent(sized) }),
  };
}

/** The slope of log cost by log size, by least squares. */
export function fitExponent(points: readonly (readonly [size: number, cost: number])[]): number {
  const logs = points.map(([size, cost]) => [Math.log(size), Math.log(cost)] as const);
  const meanX = mean(logs.map(([x]) => x));
  const meanY = mean(logs.map(([, y]) => y));
  const over = logs.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  const under = logs.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  return over / under;
}

/** Median, least and most. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
  return { median, least: sorted[0] ?? Number.NaN, most: sorted.at(-1) ?? Number.NaN };
}

/**
 * What is added from one moment to the next: the median of the slopes between moments that are near each other. A table that
 * doubled counts in few of them, and a late collection counts less the further they are apart.
 */
export function steadyGrowth(sizes: readonly number[]): number {
  const furthest = Math.max(1, Math.floor(sizes.length / 3));
  const slopes = sizes.flatMap((size, at) =>
    sizes.slice(at + 1, at + 1 + furthest).map((later, between) => (later - size) / (between + 1)),
  );
  return spread(slopes).median;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Time a part of a round: what comes before it, such as data to read, does not count. */
export async function timed(work: () => unknown): Promise<Sample> {
  const cpu = cpuUsage();
  const wall = performance.now();
  await work();
  const wallUs = (performance.now() - wall) * 1_000;
  const { user, system } = cpuUsage(cpu);
  return { cpuUs: user + system, wallUs };
}

/** Do it so many times, and tell the median time of one as that of each: what the machine does between counts less. */
export async function eachTimed(times: number, work: () => Promise<void>): Promise<Sample> {
  const walls: number[] = [];
  const cpu = cpuUsage();
  for (let nth = 0; nth < times; nth++) {
    const wall = performance.now();
    await work();
    walls.push((performance.now() - wall) * 1_000);
  }
  const { user, system } = cpuUsage(cpu);
  return { cpuUs: user + system, wallUs: spread(walls).median * times };
}
