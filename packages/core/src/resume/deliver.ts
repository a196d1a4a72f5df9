/** `deliver`: a single delivery of an orchestrator, such as a job of a queue. */
import { isStatewrightError } from "../base/errors.ts";
import type { Store } from "../checkpoint/store.ts";
import {
  deliverAnswers,
  deliverCancel,
  deliverMessage,
  deliverResume,
  deliverRun,
  deliverTimers,
} from "./delivery/begin-delivery.ts";
import { checkDelivery } from "./delivery/check-delivery.ts";
import type { Delivery, DeliveryResult } from "./delivery/delivery.ts";
import { createDeliveryContext, type DeliveryContext, isThrown } from "./delivery/delivery-context.ts";
import { createRefusal, getDeliveryResult } from "./delivery/get-delivery-result.ts";
import { checkServing, type ServingOptions, servingNames } from "./serving.ts";

/**
 * Does the work of one delivery: a run, answers, messages, a cancel, due timers, or the continuation of a thread.
 * Idempotent by `key`, and safe to call again after any death of the process: a known key continues the work of the first
 * delivery, or gives the outcome. Works on the thread until the run ends or rests, or until a limit; `hasMore` asks for
 * another delivery. Deliveries of a thread in a process run in sequence, except messages and cancels.
 *
 * Errors of the delivery and of the run are values. Throws the errors of the store (`store_*`, `fenced`, `missing_key`),
 * after which the delivery is delivered again, and `invalid_option` for invalid serving options.
 *
 * @example
 * ```ts
 * const serving = { store: sqliteStore("agent.db", { ownership: "orchestrator" }), graphs: [orders] };
 * const { status, hasMore } = await deliver(serving, {
 *   thread: job.thread,
 *   key: job.id,
 *   claim: "force",
 *   run: { graph: "orders", input: job.input },
 * });
 * ```
 */
export async function deliver(serving: ServingOptions, delivery: Delivery): Promise<DeliveryResult> {
  checkServing("deliver", serving, servingNames);
  try {
    checkDelivery(delivery);
  } catch (error) {
    return toRefusal(error);
  }
  const context = createDeliveryContext(serving, delivery);
  try {
    if ("message" in delivery) await attempt(context, () => deliverMessage(context, delivery));
    else if ("cancel" in delivery) await attempt(context, () => deliverCancel(context, delivery));
    else await runInTurn(context, () => attempt(context, () => doWork(context, delivery)));
    return await getDeliveryResult(context);
  } catch (error) {
    return toRefusal(error);
  } finally {
    context.stop.end();
  }
}

async function doWork(context: DeliveryContext, delivery: Delivery): Promise<void> {
  if ("run" in delivery) await deliverRun(context, delivery);
  else if ("answers" in delivery) await deliverAnswers(context, delivery);
  else if ("timers" in delivery) await deliverTimers(context);
  else if ("resume" in delivery) await deliverResume(context, delivery);
}

/** Records the error of work that changed nothing. Throws the errors of the store. */
async function attempt(context: DeliveryContext, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (isThrown(error) || !isStatewrightError(error)) throw error;
    context.failure = error;
  }
}

function toRefusal(error: unknown): DeliveryResult {
  if (isThrown(error)) throw error;
  return createRefusal(error);
}

/** Last delivery of each thread at work in this process. */
const turns: WeakMap<Store, Map<string, Promise<void>>> = new WeakMap();

/** Runs work after the deliveries of the thread that came before in this process. */
async function runInTurn({ store, delivery: { thread } }: DeliveryContext, work: () => Promise<void>): Promise<void> {
  const threads = turns.get(store) ?? new Map<string, Promise<void>>();
  turns.set(store, threads);
  const before = threads.get(thread);
  const own = (async () => {
    await before;
    await work();
  })();
  // The next delivery waits for the end of this one, whatever its end is.
  const turn = own.then(ignoreEnd, ignoreEnd);
  threads.set(thread, turn);
  try {
    await own;
  } finally {
    if (threads.get(thread) === turn) threads.delete(thread);
  }
}

function ignoreEnd(): void {
  // The caller of the delivery gets its error.
}
