/** Memory and CPU of a process with many concurrent threads, and with many waiting runs. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fitExponent } from "../measure.ts";
import { createScratchFile } from "../scratch-files.ts";

/** Concurrent threads at synchronous=FULL: 20 supersteps each; a superstep waits for 5 ms and adds 200 bytes. */
export interface ActiveLoad {
  readonly threads: number;
  readonly done: number;
  readonly supersteps: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** Delay of the event loop. */
  readonly loopDelayMs: { readonly p99: number; readonly max: number };
  /** Duration of a transaction of one row, in the same process after the load: the event loop waits for the disk. */
  readonly rawCommitMs: { readonly median: number; readonly max: number };
  /** Memory of the process before the load, including Node's type stripping, and its maximum. */
  readonly rssBeforeMb: number;
  readonly maxRssMb: number;
  /** Maximum heap above the heap before the load, including garbage. */
  readonly maxHeapMb: number;
}

/** Runs at an interrupt. */
export interface WaitingLoad {
  readonly runs: number;
  /** Heap of all runs together. */
  readonly heapBytes: number;
  /** Median CPU time to open a waiting thread, answer its interrupt and finish its run. */
  readonly resumeMs: number;
}

export interface Load {
  readonly active: readonly ActiveLoad[];
  readonly waiting: readonly WaitingLoad[];
}

/** Growth of a load; each figure needs at least two counts. */
export interface LoadGrowth {
  readonly cpuByThreads: number | undefined;
  readonly heapByThreads: number | undefined;
  /** CPU time to open and finish one run, by the number of waiting runs. */
  readonly resumeByWaitingRuns: number | undefined;
  /** Heap per additional waiting run. */
  readonly bytesPerWaitingRun: number | undefined;
}

export function fitLoadGrowth({ active, waiting }: Load): LoadGrowth {
  const [smallest] = waiting;
  const largest = waiting.at(-1);
  const comparable = smallest !== undefined && largest !== undefined && largest.runs > smallest.runs;
  const fitGrowthBySize = (values: readonly (readonly [number, number])[]) =>
    values.length < 2 ? undefined : fitExponent(values);
  return {
    cpuByThreads: fitGrowthBySize(active.map(({ threads, cpuSeconds }) => [threads, cpuSeconds])),
    heapByThreads: fitGrowthBySize(active.map(({ threads, maxHeapMb }) => [threads, maxHeapMb])),
    resumeByWaitingRuns: fitGrowthBySize(waiting.map(({ runs, resumeMs }) => [runs, resumeMs])),
    bytesPerWaitingRun: comparable
      ? (largest.heapBytes - smallest.heapBytes) / (largest.runs - smallest.runs)
      : undefined,
  };
}

const script = fileURLToPath(new URL("./load-process.ts", import.meta.url));

/** Measures each count in its own process. */
export async function measureLoad(counts: {
  readonly active: readonly number[];
  readonly waiting: readonly number[];
}): Promise<Load> {
  const active: ActiveLoad[] = [];
  for (const count of counts.active) active.push((await runLoadProcess("active", count)) as ActiveLoad);
  const waiting: WaitingLoad[] = [];
  for (const count of counts.waiting) waiting.push((await runLoadProcess("waiting", count)) as WaitingLoad);
  return { active, waiting };
}

async function runLoadProcess(kind: keyof Load, count: number): Promise<unknown> {
  const file = createScratchFile("load.db");
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [
      "--no-warnings",
      script,
      kind,
      String(count),
      file.path,
    ]);
    return JSON.parse(stdout);
  } finally {
    file.remove();
  }
}
