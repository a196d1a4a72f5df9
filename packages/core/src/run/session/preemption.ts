/** Pre-emption of a run: a new input replaces the run, or its process shuts down. */
import { isStatewrightError } from "../../base/errors.ts";
import type { StopKind } from "../../checkpoint/checkpoint.ts";

/** Abort reason of a pre-empted run. Users and models see its message. */
export class Preemption extends Error {
  /** `pause` leaves all pending work to a resume. */
  readonly kind: StopKind | "pause";
  /** Id of the replacing run. */
  readonly runId: string | undefined;

  constructor(how: StopKind | "pause", message: string, by?: string) {
    super(message);
    this.name = "Preemption";
    this.kind = how;
    this.runId = by;
  }

  /** Creates the reason for a run replaced by a new input. */
  static createForInput(how: StopKind, by: string): Preemption {
    return new Preemption(how, how === "cancel" ? "interrupted by a new input" : "rolled back for a new input", by);
  }
}

/** Returns true if an abort reason leaves pending work to a resume: shutdown of the process, or a failed store. */
export function isSuspension(reason: unknown): boolean {
  return reason instanceof Preemption ? reason.kind === "pause" : isStatewrightError(reason) && reason.kind === "store";
}
