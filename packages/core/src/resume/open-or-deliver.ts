/** Opens the thread of a resume, or delivers its answers to the run that owns the thread. */
import { isStatewrightError } from "../base/errors.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { AnswerDelivery, Delivery } from "../run/migration/program.ts";
import type { DeliveredEvent, RunResult } from "../run/session/options/options.ts";
import type { State } from "../run/session/returns.ts";
import type { Session } from "../run/session/session.ts";
import { type OpenSessionOptions, openSession } from "../run/task/open-session.ts";

/** Open session with the events posted before, or the result of the delivery. */
export type Opening =
  | { readonly session: Session; readonly posted: readonly DeliveredEvent[] | undefined }
  | { readonly result: RunResult<State> };

/** Events in the inbox, and the run that they are for. */
export interface PostedEvents {
  readonly run: RunRow;
  readonly events: readonly DeliveredEvent[];
}

/** First and longest wait, in milliseconds, for a thread that is busy without a run at work. */
const firstWaitMs = 5;
const longestWaitMs = 320;

/**
 * Opens the thread. While a run is at work there, posts the answers to its inbox instead; the run may end before it
 * reads them, so the thread is opened after all when no run is at work any more. Rejects with `thread_busy` when
 * another operation keeps the thread. `known`: events that an earlier resume of the same key has posted.
 */
export async function openOrDeliver(
  opening: OpenSessionOptions,
  delivery: Delivery,
  { post, createResult }: AnswerDelivery,
  known?: PostedEvents,
): Promise<Opening> {
  let posted = known;
  for (let waitMs = firstWaitMs; ; waitMs *= 4) {
    try {
      return { session: await openSession(opening), posted: posted?.events };
    } catch (error) {
      if (!isStatewrightError(error, "thread_busy")) throw error;
      const run = await findRunAtWork(delivery);
      if (run !== undefined) posted ??= { run, events: await post(delivery, run) };
      const isTaken = posted !== undefined && (await findRunAtWork(delivery)) !== undefined;
      if (posted !== undefined && (isTaken || waitMs > longestWaitMs))
        return { result: await createResult(delivery, posted.run, posted.events) };
      if (waitMs > longestWaitMs || opening.abort.signal.aborted) throw error;
    }
    await new Promise<void>((resolve) => {
      delivery.world.schedule.after(waitMs, resolve);
    });
  }
}

/** Finds the run that is at work on the branch: it is running, and its owner lives. */
async function findRunAtWork({ store, thread, branch }: Delivery): Promise<RunRow | undefined> {
  const name = branch ?? (await store.thread(thread))?.headBranch;
  const rows = await store.runs({ thread, status: "running" });
  return rows.find((row) => row.branch === name);
}
