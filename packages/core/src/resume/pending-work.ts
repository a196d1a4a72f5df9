/** Pending work in the store of an engine: queued, crashed, drained, parked, notified, halted and due runs, by thread. */
import { isStatewrightError } from "../base/errors.ts";
import type { World } from "../base/world.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import { getPlan } from "../compile/plan.ts";
import { getProgram } from "../run/begin.ts";
import { type CallerWithStore, type RunHost, startNextQueued } from "../run/queue.ts";
import type { RunHandle } from "../run/session/options/options.ts";
import { toRunKey } from "../run/session/thread-registry.ts";
import { getCodec } from "../run/task/open-session.ts";
import { createDueTimers } from "./due-timers.ts";
import { filterDeliverable } from "./notified-runs.ts";
import { resumeRun } from "./resume.ts";
import {
  type ClaimableRuns,
  continueRun,
  createCaller,
  createScanner,
  listClaimingGraphs,
  type ServingOptions,
} from "./serving.ts";
import { createSkippedRuns } from "./skipped-runs.ts";

/** Pending work of a thread. */
export interface PendingWork {
  readonly thread: string;
  /** Start or resume a single run each; in this order, one after the other. */
  readonly starters: readonly (() => Promise<RunHandle<unknown> | undefined>)[];
  /** Counts against the concurrency of the engine. */
  readonly isBounded: boolean;
  /** Releases the claim of work that was not started. */
  readonly cancel?: () => Promise<void>;
}

/** Part of the store that a scan reads: all kinds of work, or queued, crashed and drained runs after a run has ended. */
export type ScanExtent = "all" | "queue";

export interface PendingWorkScanner {
  /** Finds work and hands it on, except that of claimed threads. */
  scan(extent: ScanExtent, accept: (work: PendingWork) => Promise<void> | undefined): Promise<void>;
  /** Forgets which runs could not be continued, at the start of the engine. */
  reset(): void;
  /** True when the last scan was incomplete; reset by the request for the next scan. */
  hasMore: boolean;
}

/** Dependencies of a scanner. */
export interface ScannerParts {
  readonly options: ServingOptions;
  readonly host: RunHost;
  readonly world: World;
  readonly isClaimed: (thread: string) => boolean;
  readonly listHalted: () => Promise<readonly RunRow[]>;
  /** Tracks a run in the turn of the event loop that starts the run. */
  readonly track: (handle: RunHandle<unknown>) => void;
}

/** Creates the work that resumes a run at rest; undefined if its graph is not served here. */
export function createResumeWork({ options, host, track }: ScannerParts, run: RunRow): PendingWork | undefined {
  const caller = createCaller(options, host, run);
  if (caller === undefined) return undefined;
  const { thread, branch } = run;
  const start = async (): Promise<RunHandle<unknown>> => {
    const handle = resumeRun({ ...caller, options: { ...caller.options, thread, branch } });
    track(handle);
    return handle;
  };
  return { thread, starters: [start], isBounded: getProgram(getPlan(caller.graph)).isBounded };
}

type Starter = (caller: CallerWithStore) => Promise<RunHandle<unknown> | undefined>;

/** Creates the scanner of a store without `claimRuns`: the engine lists runs and claims them one by one. */
export function createPendingWorkScanner(parts: ScannerParts): PendingWorkScanner {
  const { options, host, world, isClaimed, listHalted, track } = parts;
  const { store, parkAfter, graphs } = options;
  const finder = createScanner(store, world);
  const dueTimers = createDueTimers({ store, world, graphs: listClaimingGraphs(graphs) });
  /** Runs logged as skipped: a single log entry per run while the run is found. */
  let loggedRuns = new Set<string>();
  /** Runs found since the last complete scan. */
  const foundRuns = new Set<string>();
  /** Runs that could not be continued: unserved and undecodable runs, and parked runs tried with the current graphs. */
  const skipped = createSkippedRuns(world);

  async function listRuns(): Promise<ClaimableRuns & { readonly due: readonly RunRow[] }> {
    skipped.removeExpired();
    const { queued, orphaned, parked, notified, more } = await finder.next();
    scanner.hasMore = more;
    const due = [...(await dueTimers.listRuns()), ...(await listHalted())];
    const deliverable = await filterDeliverable(store, getCodec(options), notified, world);
    for (const row of [...queued, ...orphaned, ...parked, ...deliverable, ...due]) foundRuns.add(toRunKey(row));
    if (!more) {
      loggedRuns = new Set([...loggedRuns].filter((key) => foundRuns.has(key)));
      foundRuns.clear();
    }
    const rotate = (rows: readonly RunRow[]): readonly RunRow[] => rotateRows(rows, world.random.next());
    return { queued: rotate(queued), orphaned: rotate(orphaned), parked: rotate(parked), notified: deliverable, due };
  }

  function watchStart(handle: RunHandle<unknown> | undefined): RunHandle<unknown> | undefined {
    handle?.result.catch((error: unknown) => {
      if (isStatewrightError(error, "store_corrupt")) skipped.add(toRunKey(handle));
    });
    return handle;
  }

  function findCaller(row: RunRow): CallerWithStore | undefined {
    const key = toRunKey(row);
    const isServed = host.getCaller(row) !== undefined;
    if (!isServed && loggedRuns.has(key)) return undefined;
    const caller = createCaller(options, host, row);
    if (caller !== undefined) return caller;
    loggedRuns.add(key);
    skipped.add(key);
    return undefined;
  }

  async function listWork(): Promise<ReadonlyMap<string, PendingWork>> {
    const { queued, orphaned, parked, notified, due } = await listRuns();
    const threads = new Map<string, PendingWork>();
    const add = (row: RunRow, start: Starter): void => {
      const { thread } = row;
      const caller = isClaimed(thread) || skipped.has(toRunKey(row)) ? undefined : findCaller(row);
      if (caller === undefined) return;
      const { starters } = threads.get(thread) ?? { starters: [] };
      const { isBounded } = getProgram(getPlan(caller.graph));
      threads.set(thread, { thread, starters: [...starters, () => start(caller)], isBounded });
    };
    const continueTracked: (row: RunRow) => Starter = (row) => async (caller) => {
      const handle = continueRun(caller, row, { parkAfter });
      track(handle);
      return handle;
    };
    // Queued runs first: a queued run may pre-empt the crashed run.
    for (const row of queued) add(row, async (caller) => watchStart(await startNextQueued(caller, store, row.thread)));
    for (const row of [...orphaned, ...notified]) add(row, continueTracked(row));
    for (const row of parked)
      add(row, (caller) => {
        skipped.add(toRunKey(row));
        return continueTracked(row)(caller);
      });
    for (const row of due) {
      const work = isClaimed(row.thread) || threads.has(row.thread) ? undefined : createResumeWork(parts, row);
      if (work !== undefined) threads.set(row.thread, work);
    }
    return threads;
  }

  const scanner: PendingWorkScanner = {
    scan: async (_, accept) => {
      for (const work of (await listWork()).values()) await accept(work);
    },
    reset: () => skipped.clear(),
    hasMore: false,
  };
  return scanner;
}

/** Begins a page at a random row, so that engines which list the same page rarely claim the same run. */
function rotateRows(rows: readonly RunRow[], chance: number): readonly RunRow[] {
  const start = Math.floor(chance * rows.length);
  return [...rows.slice(start), ...rows.slice(0, start)];
}
