/** Requests that were made for an answer and did not give it. */
import type { Usage } from "./message.ts";
import type { ModelFailureKind } from "./model-failure.ts";

/**
 * A request that was made for a message and did not give it: it may have been paid for all the same.
 *
 * `kind` says what became of it: a kind of failure; `replaced` where it was answered and a hook asked again; `cancelled`
 * where its node was given up; `unrecorded` where its run stopped before its end was saved, as by a crash; `beside` where a
 * hook asked for something else, such as a summary, and got it.
 */
export interface LostAttempt {
  /** The id of the model that was asked. */
  readonly model: string;
  readonly kind: ModelFailureKind | "replaced" | "cancelled" | "unrecorded" | "beside";
  /** What it is known to have cost; absent is unknown, not nothing. */
  readonly usage?: Usage | undefined;
}
