/** Pending work in the store of an engine: queued, crashed, drained, parked, notified, halted and due runs, by thread. */
import { isStatewrightError } from "../base/errors.ts";
import type { World } from "../base/world.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import { getBranchName } from "../checkpoint/rules.ts";
import type { Store } from "../checkpoint/store.ts";
import type { TimerKind, TimerRow } from "../checkpoint/timer.ts";
import { getPlan } from "../compile/plan.ts";
import { getProgram } from "../run/begin.ts";
import { type CallerWithStore, type RunHost, startNextQueued } from "../run/queue.ts";
import type { RunHandle } from "../run/session/options/options.ts";
import { toRunKey } from "../run/session/thread-registry.ts";
import { getCodec } from "../run/task/open-session.ts";
import { enqueueDueRuns } from "./delayed-runs.ts";
import { filterDeliverable, isResting } from "./notified-runs.ts";
import { resumeRun } from "./resume.ts";
import { fireDueSchedules } from "./schedules/fire-schedules.ts";
import { type ClaimableRuns, continueRun, createCaller, createScanner, type ServingOptions } from "./serving.ts";

/** Pending work of a thread. */
export interface PendingWork {
  /** Start or resume one run each; in this order, one after the other. */
  readonly starters: readonly (() => Promise<RunHandle<unknown> | undefined>)[];
  /** Counts against the concurrency of the engine. */
  readonly isBounded: boolean;
}

export interface PendingWorkScanner {
  /** Reads the next part of the store and returns its work by thread, except that of claimed threads. */
  scan(): Promise<ReadonlyMap<string, PendingWork>>;
  /** True when the last scan was incomplete; reset by the request for the next scan. */
  hasMore: boolean;
}

type Starter = (caller: CallerWithStore) => Promise<RunHandle<unknown> | undefined>;

export function createPendingWorkScanner({
  options,
  host,
  world,
  isClaimed,
  listHalted,
  track,
}: {
  readonly options: ServingOptions;
  readonly host: RunHost;
  readonly world: World;
  readonly isClaimed: (thread: string) => boolean;
  readonly listHalted: () => Promise<readonly RunRow[]>;
  /** Tracks a run in the turn of the event loop that starts the run. */
  readonly track: (handle: RunHandle<unknown>) => void;
}): PendingWorkScanner {
  const { store, parkAfter } = options;
  const finder = createScanner(store);
  /** Runs logged as skipped: one log entry per run while the run is found. */
  let skippedRuns = new Set<string>();
  /** Runs found since the last complete scan. */
  const foundRuns = new Set<string>();
  /** Queued runs whose input this process cannot decode; they stay queued for a process that can. */
  const undecodableRuns = new Set<string>();
  /** Parked runs already tried with the current graphs. */
  const triedRuns = new Set<string>();

  async function listRuns(): Promise<ClaimableRuns & { readonly due: readonly RunRow[] }> {
    const now = await readStoreTime(store, world);
    const hasMoreRuns = await enqueueDueRuns(store, world, now);
    const hasMoreSlots = await fireDueSchedules({ store, world, graphs: options.graphs, now });
    const { queued, orphaned, parked, notified, more } = await finder.next();
    scanner.hasMore = more || hasMoreRuns || hasMoreSlots;
    const untried = parked.filter((row) => !triedRuns.has(toRunKey(row)));
    const timers = await store.timers({ dueBy: now, kinds: wakingKinds });
    const due = [...(await listDueRuns(store, timers, now)), ...(await listHalted())];
    const deliverable = await filterDeliverable(store, getCodec(options), notified);
    for (const row of [...queued, ...orphaned, ...untried, ...deliverable, ...due]) foundRuns.add(toRunKey(row));
    if (!more) {
      skippedRuns = new Set([...skippedRuns].filter((key) => foundRuns.has(key)));
      foundRuns.clear();
    }
    return { queued, orphaned, parked: untried, notified: deliverable, due };
  }

  function trackRun(handle: RunHandle<unknown>): RunHandle<unknown> {
    track(handle);
    return handle;
  }

  function watchStart(handle: RunHandle<unknown> | undefined): RunHandle<unknown> | undefined {
    handle?.result.catch((error: unknown) => {
      if (isStatewrightError(error, "store_corrupt")) undecodableRuns.add(toRunKey(handle));
    });
    return handle;
  }

  async function scan(): Promise<ReadonlyMap<string, PendingWork>> {
    const { queued, orphaned, parked, notified, due } = await listRuns();
    const threads = new Map<string, PendingWork>();
    const add = (row: RunRow, start: Starter): void => {
      if (isClaimed(row.thread) || skippedRuns.has(toRunKey(row))) return;
      const caller = createCaller(options, host, row);
      if (caller === undefined) {
        skippedRuns.add(toRunKey(row));
        return;
      }
      const { starters } = threads.get(row.thread) ?? { starters: [] };
      const { isBounded } = getProgram(getPlan(caller.graph));
      threads.set(row.thread, { starters: [...starters, () => start(caller)], isBounded });
    };
    // Queued runs first: a queued run may pre-empt the crashed run.
    for (const row of queued)
      if (!undecodableRuns.has(toRunKey(row)))
        add(row, async (caller) => watchStart(await startNextQueued(caller, store, row.thread)));
    for (const row of [...orphaned, ...notified])
      add(row, async (caller) => trackRun(continueRun(caller, row, parkAfter)));
    for (const row of parked)
      add(row, async (caller) => {
        triedRuns.add(toRunKey(row));
        return trackRun(continueRun(caller, row, parkAfter));
      });
    for (const row of due)
      add(row, async (caller) => {
        const { thread, branch } = row;
        return trackRun(resumeRun({ ...caller, options: { ...caller.options, thread, branch } }));
      });
    return threads;
  }

  const scanner: PendingWorkScanner = { scan, hasMore: false };
  return scanner;
}

/** Kinds of timers that continue a run. */
const wakingKinds: readonly TimerKind[] = ["after", "expiry", "wake"];

/** Lists the runs with a due timer, each once. A run paused by a user stays paused until its wake time. */
async function listDueRuns(store: Store, timers: readonly TimerRow[], now: number): Promise<readonly RunRow[]> {
  const branches = new Map(timers.map((row) => [`${row.thread} ${getBranchName(row.branch)}`, row]));
  const rows = await Promise.all(
    [...branches.values()].map(async (timer) => {
      const resting = await store.runs({ thread: timer.thread, status: ["waiting", "paused"] });
      return resting.filter(
        (run) => run.branch === getBranchName(timer.branch) && (isResting(run) || isWoken(run, now)),
      );
    }),
  );
  return rows.flat();
}

/** Returns true for a paused run whose wake time has come. */
function isWoken({ status, wakeAt }: RunRow, now: number): boolean {
  return status === "paused" && wakeAt !== undefined && wakeAt <= now;
}
