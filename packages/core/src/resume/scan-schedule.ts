/** Schedule of the store scans of an engine: at the next due time, and in a poll interval. */
import { toErrorRecord } from "../base/errors.ts";
import type { World } from "../base/world.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import type { Store } from "../checkpoint/store.ts";

export interface ScanSchedule {
  /** Scans serially: a request during a scan starts another scan afterwards. Rejects with the error of the scan. */
  scan(): Promise<void>;
  /** Starts a scan and logs its failure; the next poll follows. */
  request(): void;
  /**
   * Starts a scan for a hint about a thread that is not at work here. Hints during a scan, and shortly after one, start
   * one scan together, so that scans for hints take a small part of the time.
   */
  hint(): void;
  /** Sets the next poll and the alarm for the next timer. */
  schedulePoll(): Promise<void>;
  /** Sets the alarm for the next timer. Timers already due on threads busy elsewhere are retried by the next poll. */
  scheduleAlarm(): Promise<void>;
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
  isServing,
  scanStore,
}: {
  readonly store: Store;
  readonly world: World;
  readonly pollMs: number;
  readonly isServing: () => boolean;
  readonly scanStore: () => Promise<void>;
}): ScanSchedule {
  let activeScan: Promise<void> | undefined;
  let rescan = false;
  let cancelAlarm: () => void = ignore;
  let cancelPoll: () => void = ignore;
  let cancelHint: (() => void) | undefined;
  let nextHintAt = 0;

  async function scanWhileRequested(): Promise<void> {
    try {
      while (rescan && isServing()) {
        rescan = false;
        await scanStore();
      }
    } finally {
      activeScan = undefined;
    }
  }

  function scanForHint(): void {
    cancelHint = undefined;
    if (!isServing()) return;
    const startMs = world.clock.monotonic();
    void scanOrLog().then(() => {
      const endMs = world.clock.monotonic();
      nextHintAt = endMs + (endMs - startMs) * hintPause;
    });
  }

  async function scanOrLog(): Promise<void> {
    try {
      await schedule.scan();
    } catch (error) {
      world.log("error", "the store could not be scanned", { error: toErrorRecord(error) });
    }
  }

  const schedule: ScanSchedule = {
    scan: () => {
      rescan = true;
      activeScan ??= scanWhileRequested();
      return activeScan;
    },
    request: () => {
      scanOrLog().then(() => (isServing() ? schedule.schedulePoll() : undefined), ignore);
    },
    hint: () => {
      if (cancelHint !== undefined || !isServing()) return;
      const delayMs = nextHintAt - world.clock.monotonic();
      if (delayMs > 0) cancelHint = world.schedule.after(delayMs, scanForHint);
      else {
        cancelHint = ignore;
        world.schedule.soon(scanForHint);
      }
    },
    schedulePoll: async () => {
      cancelPoll();
      cancelPoll = world.schedule.after(pollMs, schedule.request);
      await schedule.scheduleAlarm();
    },
    scheduleAlarm: async () => {
      try {
        const now = await readStoreTime(store, world);
        // Read after the answer of the store: the alarm is late by the time of the answer, and never early.
        const aheadMs = now - world.clock.now();
        const next = (await store.timers({ limit: 100 })).find(({ dueAt }) => dueAt > now);
        cancelAlarm();
        cancelAlarm = ignore;
        if (next !== undefined && isServing()) cancelAlarm = world.schedule.at(next.dueAt - aheadMs, schedule.request);
      } catch (error) {
        world.log("error", "the timers could not be read", { error: toErrorRecord(error) });
      }
    },
    cancel: () => {
      cancelPoll();
      cancelAlarm();
      cancelHint?.();
      cancelHint = undefined;
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
