/** Schedule of the store scans of an engine: at the next due time, and in a poll interval. */
import { toErrorRecord } from "../base/errors.ts";
import type { World } from "../base/world.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import type { Store } from "../checkpoint/store.ts";
import type { ScanExtent } from "./pending-work.ts";
import type { NextSlot } from "./schedules/next-slot.ts";

export interface ScanSchedule {
  /** Scans serially: a request during a scan starts another scan afterwards. Rejects with the error of the scan. */
  scan(): Promise<void>;
  /** Starts a scan and logs its failure; the next poll follows. */
  request(): void;
  /**
   * Starts a scan for a new input of a thread that is not at work here. Hints during a scan, and shortly after one,
   * start a single scan together, so that scans for hints take a small part of the time.
   */
  hint(thread: string): void;
  /** Starts a scan of the queue only, once for all requests of this turn of the event loop. */
  requestQueue(): void;
  /** Sets the next poll and the alarm for the next timer. */
  schedulePoll(): Promise<void>;
  /**
   * Sets the alarm for the next timer, once for all requests of this turn of the event loop. Timers already due on
   * threads busy elsewhere are retried by the next poll.
   */
  requestAlarm(): void;
  /** Cancels the poll and the alarm. */
  cancel(): void;
  /** Resolves when no scan is active. */
  waitForScan(): Promise<void>;
}

/** Pause after a scan for hints, as a multiple of its duration. */
const hintPause = 5;

export function createScanSchedule({
  store,
  world,
  pollMs,
  nextSlot,
  isServing,
  scanStore,
}: {
  readonly store: Store;
  readonly world: World;
  readonly pollMs: number;
  /** Next slot of the served schedules, read with each poll. */
  readonly nextSlot: NextSlot;
  readonly isServing: () => boolean;
  readonly scanStore: (extent: ScanExtent) => Promise<void>;
}): ScanSchedule {
  let activeScan: Promise<void> | undefined;
  /** Extent of the next scan. */
  let rescan: ScanExtent | undefined;
  let isQueueRequested = false;
  let isAlarmRequested = false;
  let cancelAlarm: () => void = ignore;
  let cancelPoll: () => void = ignore;
  let cancelHint: (() => void) | undefined;
  let nextHintAt = 0;
  /** Threads with a new input since the last scan for hints. */
  const hinted = new Set<string>();

  async function scanWhileRequested(): Promise<void> {
    try {
      while (rescan !== undefined && isServing()) {
        const extent = rescan;
        rescan = undefined;
        await scanStore(extent);
      }
    } finally {
      activeScan = undefined;
    }
  }

  function scan(extent: ScanExtent): Promise<void> {
    rescan = rescan === "all" ? "all" : extent;
    activeScan ??= scanWhileRequested();
    return activeScan;
  }

  /** Scans the queue for hints; all kinds of work when a message or a request waits. Never rejects. */
  async function scanForHints(): Promise<void> {
    cancelHint = undefined;
    const threads = [...hinted];
    hinted.clear();
    if (!isServing()) return;
    const startMs = world.clock.monotonic();
    try {
      const counts = await store.countInputs(threads);
      await scan(counts.some(({ messages, requests }) => messages > 0 || requests > 0) ? "all" : "queue");
    } catch (error) {
      logFailedScan(error);
    }
    const endMs = world.clock.monotonic();
    nextHintAt = endMs + (endMs - startMs) * hintPause;
  }

  function logFailedScan(error: unknown): void {
    world.log("error", "the store could not be scanned", { error: toErrorRecord(error) });
  }

  async function scheduleAlarm(): Promise<void> {
    try {
      const now = await readStoreTime(store, world);
      // Read after the answer of the store: the alarm is late by the time of the answer, and never early.
      const aheadMs = now - world.clock.now();
      // A single row and a single timer of the process, however many timers the store has.
      const [timer] = await store.timers({ dueAfter: now, limit: 1 });
      const dueAt = Math.min(timer?.dueAt ?? Number.POSITIVE_INFINITY, nextSlot.get());
      cancelAlarm();
      cancelAlarm = ignore;
      if (Number.isFinite(dueAt) && isServing()) cancelAlarm = world.schedule.at(dueAt - aheadMs, schedule.request);
    } catch (error) {
      world.log("error", "the timers could not be read", { error: toErrorRecord(error) });
    }
  }

  const schedule: ScanSchedule = {
    scan: () => scan("all"),
    request: () => {
      scan("all")
        .catch(logFailedScan)
        .then(() => (isServing() ? schedule.schedulePoll() : undefined), ignore);
    },
    hint: (thread) => {
      hinted.add(thread);
      if (cancelHint !== undefined || !isServing()) return;
      const delayMs = nextHintAt - world.clock.monotonic();
      if (delayMs > 0) cancelHint = world.schedule.after(delayMs, () => void scanForHints());
      else {
        cancelHint = ignore;
        world.schedule.soon(() => void scanForHints());
      }
    },
    requestQueue: () => {
      if (isQueueRequested) return;
      isQueueRequested = true;
      world.schedule.soon(() => {
        isQueueRequested = false;
        if (isServing()) scan("queue").catch(logFailedScan);
      });
    },
    schedulePoll: async () => {
      cancelPoll();
      cancelPoll = world.schedule.after(pollMs, schedule.request);
      await nextSlot.read();
      await scheduleAlarm();
    },
    requestAlarm: () => {
      if (isAlarmRequested) return;
      isAlarmRequested = true;
      world.schedule.soon(() => {
        isAlarmRequested = false;
        if (isServing()) void scheduleAlarm();
      });
    },
    cancel: () => {
      cancelPoll();
      cancelAlarm();
      cancelHint?.();
      cancelHint = undefined;
      hinted.clear();
    },
    waitForScan: async () => {
      await activeScan?.catch(ignore);
    },
  };
  return schedule;
}

function ignore(): void {
  // Default of cancel callbacks.
}
