/** Deliveries of notifications: calls of `send`, with timeouts, and their outcomes in the store. */
import { describeFailure, toErrorRecord } from "../../base/errors.ts";
import { computeRetryDelayMs } from "../../base/retry.ts";
import type { World } from "../../base/world.ts";
import { notificationConsumer, parseNotification } from "../../checkpoint/notification.ts";
import type { OutboxOutcome, OutboxRow } from "../../checkpoint/outbox.ts";
import { readStoreTime } from "../../checkpoint/read-store-time.ts";
import type { Store } from "../../checkpoint/store.ts";
import { subscribeToAbort } from "../../run/session/abort.ts";
import type { ResolvedNotifyOptions } from "./notify-options.ts";

export interface Deliveries {
  /**
   * Claims due notifications, as many as there are free places, and starts their deliveries; an engine that has stopped
   * meanwhile returns them.
   */
  startDue(now: number): Promise<void>;
  /** Saves the outcomes that the store refused for the moment. Rejects with the error of the store. */
  saveOutcomes(): Promise<void>;
  /** Aborts the signals of the current deliveries. */
  abort(): void;
  /** Resolves when no delivery is active. */
  waitUntilEmpty(): Promise<void>;
}

interface DeliveryParts {
  readonly store: Store;
  readonly world: World;
  readonly options: ResolvedNotifyOptions;
}

/** Longest delay between two attempts, in milliseconds. */
const longestDelayMs = 3_600_000;

interface DeliveryHooks {
  /** Called when a delivery has ended and further notifications may be due. */
  readonly onFree: () => void;
  readonly isServing: () => boolean;
}

export function createDeliveries({ onFree, isServing, ...parts }: DeliveryParts & DeliveryHooks): Deliveries {
  const { store, world, options } = parts;
  const active = new Map<Promise<void>, AbortController>();
  /** Outcomes that the store has not accepted: their rows stay claimed by this process. */
  const unsaved = new Map<number, OutboxOutcome>();

  async function saveOutcome(position: number, outcome: OutboxOutcome): Promise<void> {
    unsaved.set(position, outcome);
    await store.outbox.finish(position, outcome);
    unsaved.delete(position);
  }

  async function deliver(row: OutboxRow, controller: AbortController): Promise<void> {
    const result: SendResult = isServing() ? await callSend(row, controller, parts) : { kind: "released" };
    const outcome = await toOutcome(row, result, parts);
    await saveOutcome(row.position, outcome).catch((error: unknown) => {
      const fields = { thread: row.thread, error: toErrorRecord(error) };
      world.log("warn", "the delivery of a notification could not be saved", fields);
    });
  }

  return {
    startDue: async (at) => {
      const limit = options.concurrency - active.size;
      const rows = limit < 1 ? [] : await store.outbox.claim({ consumer: notificationConsumer, at, limit });
      for (const row of rows) {
        const controller = new AbortController();
        const delivery = deliver(row, controller).then(() => {
          active.delete(delivery);
          if (rows.length === limit) onFree();
        });
        active.set(delivery, controller);
      }
    },
    saveOutcomes: async () => {
      for (const [position, outcome] of unsaved) await saveOutcome(position, outcome);
    },
    abort: () => {
      for (const controller of active.values()) controller.abort(new Error("the engine stops"));
    },
    waitUntilEmpty: async () => {
      await Promise.all(active.keys());
    },
  };
}

type SendResult =
  | { readonly kind: "delivered" }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "released" };

/** Calls `send` until its end, the timeout, or the stop of the engine. */
async function callSend(
  row: OutboxRow,
  controller: AbortController,
  { world, options: { send, timeoutMs } }: DeliveryParts,
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

/** Returns the outcome of an attempt: the next one with a growing delay, until all attempts have failed. */
async function toOutcome(
  row: OutboxRow,
  result: SendResult,
  { store, world, options: { attempts, initialMs } }: DeliveryParts,
): Promise<OutboxOutcome> {
  if (result.kind === "released") return result;
  const at = await readStoreTime(store, world).catch(() => world.clock.now());
  if (result.kind === "delivered") return { kind: "delivered", at };
  const { error } = result;
  const attempt = row.attempts + 1;
  world.log("warn", "a notification could not be delivered", { thread: row.thread, attempt, error });
  if (attempt >= attempts) return { kind: "given_up", error, at };
  const policy = { attempts, initialMs, maxMs: longestDelayMs };
  return { kind: "failed", error, retryAt: at + computeRetryDelayMs(policy, attempt, world.random.next()) };
}
