import type { Usage } from "./message.ts";
import type { ModelFailureKind } from "./model-failure.ts";

/**
 * A model request that did not produce its message. The provider may still have billed the request.
 *
 * `kind` is a failure kind, or `replaced` (answered, but a hook requested another answer), `cancelled` (the node was
 * cancelled), `unrecorded` (the run stopped before the result was saved, as in a crash), or `beside` (a successful
 * auxiliary request of a hook, such as a summary).
 */
export interface FailedAttempt {
  /** Id of the requested model. */
  readonly model: string;
  readonly kind: ModelFailureKind | "replaced" | "cancelled" | "unrecorded" | "beside";
  /** Known usage; undefined means unknown, not zero. */
  readonly usage?: Usage | undefined;
}
