/** What a process holds while many threads are at work at the same time, and while many more wait for people. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fitExponent } from "../measure.ts";
import { scratchFile } from "../scratch-files.ts";

/** Threads at work at the same time, at synchronous=FULL: 20 supersteps each, which wait for 5 ms and add 200 bytes. */
export interface Active {
  readonly threads: number;
  readonly done: number;
  readonly supersteps: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** How late the event loop was. */
  readonly loopDelayMs: { readonly p99: number; readonly most: number };
  /** What the disk takes for a transaction of one row, in the same process afterwards: the loop waits for the disk. */
  readonly rawCommitMs: { readonly median: number; readonly most: number };
  /** Memory of the process before, in which Node reads TypeScript, and the most that it had. */
  readonly rssBeforeMb: number;
  readonly mostRssMb: number;
  /** The most heap beyond that of the process before; what was not collected yet is in it. */
  readonly mostHeapMb: number;
}

/** Runs that wait for a person. */
export interface Parked {
  readonly runs: number;
  /** Of all of them together. */
  readonly heapBytes: number;
  /** CPU to open a waiting thread, answer it, and run it to its end: the median. */
  readonly resumeMs: number;
}

export interface Load {
  readonly active: readonly Active[];
  readonly parked: readonly Parked[];
}

/** How a load grows, where more than one count was measured. */
export interface LoadGrowth {
  readonly cpuByThreads: number | undefined;
  readonly heapByThreads: number | undefined;
  /** CPU to open and end one run, by the number of those that wait. */
  readonly resumeByParked: number | undefined;
  /** Heap of each further run that waits. */
  readonly bytesOfParked: number | undefined;
}

export function loadGrowth({ active, parked }: Load): LoadGrowth {
  const [fewest] = parked;
  const most = parked.at(-1);
  const some = fewest !== undefined && most !== undefined && most.runs > fewest.runs;
  const bySize = (values: readonly (readonly [number, number])[]) =>
    values.length < 2 ? undefined : fitExponent(values);
  return {
    cpuByThreads: bySize(active.map(({ threads, cpuSeconds }) => [threads, cpuSeconds])),
    heapByThreads: bySize(active.map(({ threads, mostHeapMb }) => [threads, mostHeapMb])),
    resumeByParked: bySize(parked.map(({ runs, resumeMs }) => [runs, resumeMs])),
    bytesOfParked: some ? (most.heapBytes - fewest.heapBytes) / (most.runs - fewest.runs) : undefined,
  };
}

const script = fileURLToPath(new URL("./load-process.ts", import.meta.url));

/** Each count in a process of its own. */
export async function findLoad(counts: {
  readonly active: readonly number[];
  readonly parked: readonly number[];
}): Promise<Load> {
  const active: Active[] = [];
  for (const count of counts.active) active.push((await inProcess("active", count)) as Active);
  const parked: Parked[] = [];
  for (const count of counts.parked) parked.push((await inProcess("parked", count)) as Parked);
  return { active, parked };
}

async function inProcess(which: keyof Load, count: number): Promise<unknown> {
  const file = scratchFile("load.db");
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [
      "--no-warnings",
      script,
      which,
      String(count),
      file.path,
    ]);
    return JSON.parse(stdout);
  } finally {
    file.remove();
  }
}
