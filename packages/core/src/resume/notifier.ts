/**
 * Notifier of an engine: delivers the notifications in the outbox of its store. Each is claimed by one living process
 * and kept until its delivery is saved, so that a notification is delivered at least once, after any death.
 */
import { describeFailure, toErrorRecord } from "../base/errors.ts";
import { computeRetryDelayMs } from "../base/retry.ts";
import type { World } from "../base/world.ts";
import { notificationConsumer, notificationKinds, parseNotification } from "../checkpoint/notification.ts";
import type { OutboxOutcome, OutboxRow } from "../checkpoint/outbox.ts";
import { readStoreTime } from "../checkpoint/read-store-time.ts";
import type { Store } from "../checkpoint/store.ts";
import { subscribeToAbort } from "../run/session/abort.ts";
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

/** Longest delay between two attempts, in milliseconds. */
const longestDelayMs = 3_600_000;

/** Time between two deletions of old rows, and the number of rows of one deletion. */
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
  const { keepMs, concurrency, waitingLongerThanMs } = options;
  const overdue =
    waitingLongerThanMs === undefined
      ? undefined
      : createOverdueScan({ store, clock: world.clock, waitingLongerThanMs });
  const active = new Map<Promise<void>, AbortController>();
  /** Outcomes that the store refused for the moment: their rows stay claimed by this process. */
  const unsaved = new Map<number, OutboxOutcome>();
  let isServing = false;
  let pass: Promise<void> | undefined;
  let isRequested = false;
  let nextSweepAt = 0;

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
    for (const [position, outcome] of unsaved) await saveOutcome(position, outcome);
    await overdue?.add(now);
    const limit = concurrency - active.size;
    const rows = limit < 1 ? [] : await store.outbox.claim({ consumer: notificationConsumer, at: now, limit });
    for (const row of rows) startDelivery(row, limit === rows.length);
    if (world.clock.monotonic() < nextSweepAt) return;
    nextSweepAt = world.clock.monotonic() + sweepEveryMs;
    await store.outbox.sweep({ consumer: notificationConsumer, finishedBefore: now - keepMs, limit: sweepLimit });
  }

  function startDelivery(row: OutboxRow, mayHaveMore: boolean): void {
    const controller = new AbortController();
    const delivery = deliver(row, controller).then(() => {
      active.delete(delivery);
      if (mayHaveMore) notifier.request();
    });
    active.set(delivery, controller);
  }

  async function deliver(row: OutboxRow, controller: AbortController): Promise<void> {
    const outcome = await callSend(row, { controller, options, world });
    await saveOutcome(row.position, await toOutcome(row, outcome)).catch((error: unknown) => {
      world.log("warn", "the delivery of a notification could not be saved", {
        thread: row.thread,
        error: toErrorRecord(error),
      });
    });
  }

  async function toOutcome(row: OutboxRow, result: SendResult): Promise<OutboxOutcome> {
    if (result.kind === "released") return result;
    const at = await readStoreTime(store, world).catch(() => world.clock.now());
    if (result.kind === "delivered") return { kind: "delivered", at };
    const { error } = result;
    const attempts = row.attempts + 1;
    world.log("warn", "a notification could not be delivered", { thread: row.thread, attempts, error });
    if (attempts >= options.attempts) return { kind: "given_up", error, at };
    const policy = { attempts: options.attempts, initialMs: options.initialMs, maxMs: longestDelayMs };
    return { kind: "failed", error, retryAt: at + computeRetryDelayMs(policy, attempts, world.random.next()) };
  }

  async function saveOutcome(position: number, outcome: OutboxOutcome): Promise<void> {
    unsaved.set(position, outcome);
    await store.outbox.finish(position, outcome);
    unsaved.delete(position);
  }

  const notifier: Notifier = {
    start: async () => {
      await store.outbox.subscribe({ consumer: notificationConsumer, topics: notificationKinds });
      isServing = true;
    },
    request: () => {
      if (!isServing) return;
      isRequested = true;
      pass ??= runPasses();
    },
    stop: async () => {
      isServing = false;
      await pass;
      await Promise.all(active.keys());
    },
    abort: () => {
      for (const controller of active.values()) controller.abort(new Error("the engine stops"));
    },
  };
  return notifier;
}

type SendResult =
  | { readonly kind: "delivered" }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "released" };

/** Calls `send` until it ends, the timeout, or the stop of the engine. */
async function callSend(
  row: OutboxRow,
  {
    controller,
    options: { send, timeoutMs },
    world,
  }: {
    readonly controller: AbortController;
    readonly options: Pick<ResolvedNotifyOptions, "send" | "timeoutMs">;
    readonly world: World;
  },
): Promise<SendResult> {
  const { signal } = controller;
  let isTimeout = false;
  const cancelTimeout = world.schedule.after(timeoutMs, () => {
    isTimeout = true;
    controller.abort(new Error(`no answer within ${timeoutMs} ms`));
  });
  let stopListening: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    stopListening = subscribeToAbort(signal, () => reject(signal.reason));
  });
  try {
    const call = async (): Promise<unknown> =>
      await send(parseNotification(row), { signal, attempt: row.attempts + 1 });
    await Promise.race([call(), aborted]);
    return { kind: "delivered" };
  } catch (error) {
    return signal.aborted && !isTimeout ? { kind: "released" } : { kind: "failed", error: describeFailure(error) };
  } finally {
    cancelTimeout();
    stopListening?.();
  }
}
