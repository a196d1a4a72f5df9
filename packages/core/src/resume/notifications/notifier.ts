/**
 * Notifier of an engine: delivers the notifications in the outbox of its store. Each notification is claimed by one
 * living process and kept until its delivery is saved, so that it is delivered at least once, after any death.
 */
import { toErrorRecord } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import { notificationConsumer, notificationKinds } from "../../checkpoint/notification.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import type { Store } from "../../checkpoint/store.ts";
import { createDeliveries } from "./notification-deliveries.ts";
import type { ResolvedNotifyOptions } from "./notify-options.ts";
import { createOverdueScan } from "./overdue-scan.ts";

export interface Notifier {
  /** Subscribes the engines of the store: later commits of every process write notifications. */
  start(): Promise<void>;
  /** Looks for due notifications and delivers them in the background. */
  request(): void;
  /** Starts no more deliveries; resolves when the current ones have ended. */
  stop(): Promise<void>;
  /** Aborts the signals of the current deliveries. */
  abort(): void;
}

/** Time between two deletions of old rows, and the number of rows of a deletion. */
const sweepEveryMs = 60_000;
const sweepLimit = 1_000;

export function createNotifier({
  store,
  world,
  options,
}: {
  readonly store: Store;
  readonly world: World;
  readonly options: ResolvedNotifyOptions;
}): Notifier {
  const consumer = notificationConsumer;
  const { keepMs, waitingLongerThanMs } = options;
  const scan = { store, world };
  const overdue = waitingLongerThanMs === undefined ? undefined : createOverdueScan({ ...scan, waitingLongerThanMs });
  let isServing = false;
  const deliveries = createDeliveries({ store, world, options, onFree: request, isServing: () => isServing });
  let pass: Promise<void> | undefined;
  let isRequested = false;
  let nextSweepAt = 0;

  function request(): void {
    if (!isServing) return;
    isRequested = true;
    pass ??= runPasses();
  }

  async function runPasses(): Promise<void> {
    try {
      while (isRequested && isServing) {
        isRequested = false;
        await runPass(await readStoreTime(store, world));
      }
    } catch (error) {
      world.log("error", "the notifications could not be read", { error: toErrorRecord(error) });
    } finally {
      pass = undefined;
    }
  }

  async function runPass(now: number): Promise<void> {
    await deliveries.saveOutcomes();
    await overdue?.add(now);
    await deliveries.startDue(now);
    if (world.clock.monotonic() < nextSweepAt) return;
    nextSweepAt = world.clock.monotonic() + sweepEveryMs;
    await store.outbox.sweep({ consumer, finishedBefore: now - keepMs, limit: sweepLimit });
  }

  return {
    start: async () => {
      await store.outbox.subscribe({ consumer, topics: notificationKinds });
      isServing = true;
    },
    request,
    stop: async () => {
      isServing = false;
      await pass;
      await deliveries.waitUntilEmpty();
    },
    abort: deliveries.abort,
  };
}
