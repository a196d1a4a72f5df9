/** Work of an engine: finds the pending work of its store in scans, and performs the work until the engine stops. */
import type { World } from "../base/world.ts";
import { type RunHost, resolveWaitingRuns } from "../run/queue.ts";
import type { RunHandle } from "../run/session/options/options.ts";
import { createActiveRuns } from "./active-runs.ts";
import { createClaimScanner } from "./claimed-work.ts";
import { createHaltedRuns } from "./halted-runs.ts";
import type { Notifier } from "./notifications/notifier.ts";
import { createPendingWorkScanner, type ScanExtent } from "./pending-work.ts";
import { finishRequestedRuns } from "./requested-runs.ts";
import { createScanSchedule } from "./scan-schedule.ts";
import { createNextSlot } from "./schedules/next-slot.ts";
import type { ScheduleGuards } from "./schedules/schedule-guard.ts";
import { createDueStarter } from "./schedules/start-due-runs.ts";
import { createHost, type ServingOptions } from "./serving.ts";
import { createWorkPool } from "./work-pool.ts";

/** State of an engine. */
export type EngineState = "idle" | "serving" | "stopping" | "stopped";

export interface EngineWork {
  /** Host of the runs that the engine starts. */
  readonly host: RunHost;
  /** Tracks a run until the run ends or suspends. */
  track(handle: RunHandle<unknown>): void;
  /** Prepares the watch of the store, the scanner and the relay. */
  prepare(): void;
  /** Performs the pending work of the store and schedules the next scan. Rejects with the error of the store. */
  start(): Promise<void>;
  /** Drains the active runs and releases all other work; resolves when all runs are saved. */
  stop(): Promise<void>;
  /** Aborts the signals of all active runs and deliveries. */
  abort(): void;
}

/** Below this number of threads with work, an engine scans for more work before the next poll. */
const eagerScanBelow = 250;

/** Dependencies of the work of an engine. */
export interface EngineWorkParts {
  readonly options: ServingOptions;
  readonly world: World;
  readonly concurrency: number;
  readonly pollMs: number;
  readonly onRun: ((run: RunHandle<unknown>) => void) | undefined;
  readonly notifier: Notifier | undefined;
  readonly guards: ScheduleGuards;
  readonly getState: () => EngineState;
}

export function createEngineWork(parts: EngineWorkParts): EngineWork {
  const { options, world, concurrency, pollMs, onRun, notifier, guards, getState } = parts;
  const { store, graphs } = options;
  const { claimRuns } = store;
  const isServing = (): boolean => getState() === "serving";
  /** Threads with a queued run that this engine has not claimed yet. */
  const requestedThreads = new Set<string>();
  let unwatch: (() => void) | undefined;

  const nextSlot = createNextSlot({ store, world, graphs: graphs.map(({ name }) => name) });
  const startDueRuns = createDueStarter({ store, world, graphs, guards, isServing });
  const schedule = createScanSchedule({ store, world, pollMs, nextSlot, isServing, scanStore });
  const halted = createHaltedRuns({ store, world, firstDelayMs: pollMs });
  const activeRuns = createActiveRuns({
    halted,
    world,
    onRun,
    isStopping: () => getState() === "stopping",
    onEnd: (result) => {
      if (result?.status !== "done") notifier?.request();
      // Only a run at rest has armed timers.
      if (isServing() && (result?.status === "waiting" || result?.status === "paused")) schedule.requestAlarm();
    },
  });
  const track = (handle: RunHandle<unknown>): void => void activeRuns.track(handle);
  const pool = createWorkPool({ world, concurrency, activeRuns, isServing, onDone: scanForMore });
  const isClaimed = pool.hasThread;
  const requestRuns = claimRuns === undefined ? undefined : claimLater;
  const host = createHost(options, { canStart: isServing, onLaunch: track, requestRuns });
  const scannerParts = { options, host, world, isClaimed, listHalted: () => halted.list(isClaimed), track };
  const scanner =
    claimRuns === undefined
      ? createPendingWorkScanner(scannerParts)
      : createClaimScanner({ ...scannerParts, claimRuns, countFreeSlots: pool.countFreeSlots });

  async function scanStore(extent: ScanExtent): Promise<void> {
    if (extent === "all") {
      await nextSlot.startScan();
      notifier?.request();
      await finishRequestedRuns(options, isClaimed);
      await startDueRuns();
    }
    const threads = [...requestedThreads];
    await scanner.scan(extent, pool.accept);
    if (!scanner.hasMore && threads.length > 0) world.schedule.soon(() => resolveUnclaimed(threads));
  }

  /** Callers that wait here for a run of a thread do not wait for the process that has claimed the thread. */
  function resolveUnclaimed(threads: readonly string[]): void {
    for (const thread of threads) {
      requestedThreads.delete(thread);
      resolveWaitingRuns(store, thread);
    }
  }

  function claimLater(thread: string): void {
    requestedThreads.add(thread);
    schedule.requestQueue();
  }

  /** Scans for the work that the last scan has left in the store. */
  function scanForMore(): void {
    if (!scanner.hasMore || !isServing()) return;
    if (claimRuns !== undefined) schedule.requestQueue();
    else if (pool.size() < eagerScanBelow) {
      scanner.hasMore = false;
      schedule.request();
    }
  }

  /** Scans when another caller or process adds work. The runs of this engine read their own inputs. */
  function watchStore(): void {
    unwatch ??= store.watch?.(
      (thread) => {
        if (!isClaimed(thread) && pool.size() < eagerScanBelow) schedule.hint(thread);
      },
      { kinds: ["input"] },
    );
  }

  return {
    host,
    track,
    prepare: () => {
      watchStore();
      scanner.reset();
      options.relay?.prepare?.();
    },
    start: async () => {
      await notifier?.start();
      await schedule.scan();
      await schedule.schedulePoll();
    },
    stop: async () => {
      unwatch?.();
      unwatch = undefined;
      schedule.cancel();
      const notified = notifier?.stop();
      const cancelled = pool.cancelUnstarted();
      activeRuns.drain();
      await schedule.waitForScan();
      await cancelled;
      await activeRuns.waitUntilEmpty();
      await notified;
      schedule.cancel();
    },
    abort: () => {
      activeRuns.abort();
      notifier?.abort();
    },
  };
}
