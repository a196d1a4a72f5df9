/** Ends of the superstep loop. */
import type { StatewrightError } from "../../base/errors.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { FinishedTask } from "./step-result.ts";

/** Reason why no task can run now. Failures are thrown. */
export type Stop =
  | { readonly kind: "done"; readonly output: unknown }
  | { readonly kind: "waiting"; readonly interrupts: readonly InterruptRow[] }
  | { readonly kind: "paused"; readonly cause: StatewrightError }
  /** Tool calls failed the run; their answers and all other results are committed. */
  | { readonly kind: "failed"; readonly error: Error }
  /** `step` holds the finished tasks of the cancelled superstep. */
  | { readonly kind: "cancelled"; readonly step?: PartialSuperstep };

/** Finished tasks and start time of a partial superstep. */
export interface PartialSuperstep {
  readonly finished: readonly FinishedTask[];
  readonly startedAt: number;
}
