/**
 * Measurement. CPU time comes first, because CPU time repeats on a busy machine; wall time comes second. Contenders
 * alternate in each round, so that other work on the machine affects all contenders; the median of the rounds counts.
 */
import { spawnSync } from "node:child_process";
import { cpuUsage } from "node:process";
import type { Case, Contender, Role } from "./case.ts";
import { openRunner, type Runner } from "./runner.ts";
import type { Sample } from "./sample.ts";

/** Median, minimum and maximum of the rounds. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Measurement of one contender of a case, per unit of its work. */
export interface Measurement {
  readonly name: string;
  readonly role: Role;
  /** Units per round. */
  readonly size: number;
  readonly rounds: number;
  readonly cpuUs: Spread;
  readonly wallUs: Spread;
  readonly bytes: number | undefined;
  readonly growth: Growth | undefined;
  /** Short note of the contender. */
  readonly notes?: string | undefined;
  /** Sentence for the text below the table. */
  readonly remark?: string | undefined;
}

/** CPU time by the size of the work: the exponent of a fit of log CPU by log size. An exponent of 1 is linear. */
export interface Growth {
  readonly points: readonly Point[];
  readonly exponent: number;
  /** Exponent of the bytes on disk, if the contender counts bytes. */
  readonly bytesExponent?: number;
}

interface Point {
  readonly size: number;
  readonly cpuUs: number;
  readonly bytes?: number | undefined;
}

export interface MeasureOptions {
  readonly rounds: number;
  /**
   * CPU time of a contender's warm-up in milliseconds, for each of its processes. Two rounds of a fast contender end
   * before its code is compiled, and each process compiles its own code.
   */
  readonly warmUpMs: number;
  readonly growth: boolean;
  /** Opens a contender. Default: in this process. */
  readonly open?: (contender: Contender) => Promise<Runner>;
}

const minWarmUps = 2;
const minRounds = 3;
/** Maximum wall time of a warm-up, as a factor of its CPU time: a contender that waits, or a busy machine. */
const maxWarmUpFactor = 4;
/**
 * Time limit of a contender. A contender above the limit gets only the minimum of rounds; a contender with a single
 * round above the limit gets one round.
 */
const timeLimitMs = 20_000;

/** Measures every contender of a case. */
export async function measureCase(
  { size, contenders, disk = false, sizeKind: kind = "work", steady = false }: Case,
  { rounds, warmUpMs, growth, open = openRunner }: MeasureOptions,
): Promise<readonly Measurement[]> {
  const entrants: Entrant[] = [];
  for (const contender of contenders)
    entrants.push(createEntrant(contender, await open(contender), contender.size ?? size));
  for (const entrant of entrants) await warmUp(entrant, { warmUpMs, steady });
  for (let round = 0; round < rounds; round++) {
    for (const entrant of entrants) {
      if (entrant.samples.length >= entrant.requiredRounds && entrant.usedMs > timeLimitMs) continue;
      if (disk) syncDisk();
      const sample = await entrant.runner.runRound(entrant.size, steady);
      entrant.usedMs += sample.wallUs / 1_000;
      entrant.samples.push(sample);
    }
  }
  const measurements: Measurement[] = [];
  for (const { contender, runner, size: unitsPerRound, samples } of entrants) {
    const units = kind === "data" ? 1 : unitsPerRound;
    const { bytes, notes, remark } = await runner.getRoundDetails();
    const sizes = growth ? contender.growth : undefined;
    const fittedGrowth = sizes === undefined ? undefined : await measureGrowth(runner, { sizes, steady });
    const closeBytes = await runner.close();
    measurements.push({
      name: contender.name,
      role: contender.role,
      size: unitsPerRound,
      rounds: samples.length,
      cpuUs: computeSpread(samples.map(({ cpuUs }) => cpuUs / units)),
      wallUs: computeSpread(samples.map(({ wallUs }) => wallUs / units)),
      bytes: bytes === undefined ? closeBytes : bytes / units,
      growth: fittedGrowth,
      notes,
      remark,
    });
  }
  return measurements;
}

interface Entrant {
  readonly contender: Contender;
  readonly runner: Runner;
  readonly size: number;
  readonly samples: Sample[];
  usedMs: number;
  /** Minimum number of rounds, regardless of `usedMs`. */
  requiredRounds: number;
}

function createEntrant(contender: Contender, runner: Runner, size: number): Entrant {
  return { contender, runner, size, samples: [], usedMs: 0, requiredRounds: minRounds };
}

async function warmUp(
  entrant: Entrant,
  { warmUpMs, steady }: { readonly warmUpMs: number; readonly steady: boolean },
): Promise<void> {
  const requiredMs = warmUpMs * (entrant.contender.processes ?? 1);
  const until = performance.now() + maxWarmUpFactor * requiredMs;
  let cpuMs = 0;
  for (let round = 0; round < minWarmUps || (cpuMs < requiredMs && performance.now() < until); round++) {
    const sample = await entrant.runner.runRound(entrant.size, steady);
    cpuMs += sample.cpuUs / 1_000;
    if (!isTooLong(sample)) continue;
    // Most of such a long round is warm, so the round counts.
    entrant.samples.push(sample);
    entrant.usedMs = Number.POSITIVE_INFINITY;
    entrant.requiredRounds = 1;
    return;
  }
}

/** Compares CPU time, which does not depend on other work on the machine. */
function isTooLong({ cpuUs }: Sample): boolean {
  return cpuUs / 1_000 > timeLimitMs;
}

/** Flushes pending writes of the system. Without a `sync` command, the rounds run without a flush. */
function syncDisk(): void {
  spawnSync("sync", { stdio: "ignore" });
}

/** Sizes to measure; `steady` rounds start without a garbage collection. */
interface GrowthRounds {
  readonly sizes: readonly number[];
  readonly steady: boolean;
}

async function measureGrowth(runner: Runner, { sizes, steady }: GrowthRounds): Promise<Growth> {
  const points = [];
  for (const size of sizes) {
    const samples = [];
    for (let round = 0; round < minRounds; round++) {
      const sample = await runner.runRound(size, steady);
      samples.push(sample.cpuUs);
      if (isTooLong(sample)) break;
    }
    points.push({ size, cpuUs: computeSpread(samples).median, bytes: (await runner.getRoundDetails()).bytes });
  }
  const bytePoints = points.flatMap(({ size, bytes }) => (bytes === undefined ? [] : [[size, bytes] as const]));
  return {
    points,
    exponent: fitExponent(points.map(({ size, cpuUs }) => [size, cpuUs])),
    ...(bytePoints.length === points.length && { bytesExponent: fitExponent(bytePoints) }),
  };
}

/** Returns the slope of log cost by log size, by least squares. */
export function fitExponent(points: readonly (readonly [size: number, cost: number])[]): number {
  const logs = points.map(([size, cost]) => [Math.log(size), Math.log(cost)] as const);
  const meanX = computeMean(logs.map(([x]) => x));
  const meanY = computeMean(logs.map(([, y]) => y));
  const covariance = logs.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0);
  const variance = logs.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  return covariance / variance;
}

/** Returns median, minimum and maximum. */
export function computeSpread(values: readonly number[]): Spread {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  const median = sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
  return { median, min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN };
}

/**
 * Returns the growth per measurement: the median of the slopes between near measurements. Only a few slopes include
 * the doubling of an internal table, and the effect of a late collection decreases with the distance.
 */
export function computeSteadyGrowth(sizes: readonly number[]): number {
  const maxDistance = Math.max(1, Math.floor(sizes.length / 3));
  const slopes = sizes.flatMap((size, index) =>
    sizes.slice(index + 1, index + 1 + maxDistance).map((later, between) => (later - size) / (between + 1)),
  );
  return computeSpread(slopes).median;
}

function computeMean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Measures a part of a round, without its preparation, such as the creation of data. */
export async function measureTime(work: () => unknown): Promise<Sample> {
  const cpu = cpuUsage();
  const wall = performance.now();
  await work();
  const wallUs = (performance.now() - wall) * 1_000;
  const { user, system } = cpuUsage(cpu);
  return { cpuUs: user + system, wallUs };
}

/**
 * Repeats the work and returns the median wall time for each repetition, so that interruptions by the machine count
 * less.
 */
export async function measureEach(times: number, work: () => Promise<void>): Promise<Sample> {
  const walls: number[] = [];
  const cpu = cpuUsage();
  for (let nth = 0; nth < times; nth++) {
    const wall = performance.now();
    await work();
    walls.push((performance.now() - wall) * 1_000);
  }
  const { user, system } = cpuUsage(cpu);
  return { cpuUs: user + system, wallUs: computeSpread(walls).median * times };
}
