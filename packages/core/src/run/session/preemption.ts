/** Why a run stops that nobody cancelled: a new input takes its place, or its process goes. */
import { isStatewrightError } from "../../base/errors.ts";
import type { StopKind } from "../../checkpoint/checkpoint.ts";

/** What fires the signals of such a run. Its message is what people and models are told. */
export class Stopped extends Error {
  /** `pause` leaves everything for a resume. */
  readonly how: StopKind | "pause";
  /** The id of the run that takes the place. */
  readonly by: string | undefined;

  constructor(how: StopKind | "pause", message: string, by?: string) {
    super(message);
    this.name = "Stopped";
    this.how = how;
    this.by = by;
  }

  /** The run ends for a new input. */
  static forInput(how: StopKind, by: string): Stopped {
    return new Stopped(how, how === "interrupt" ? "interrupted by a new input" : "taken back for a new input", by);
  }
}

/** Whether what fired a run's signals leaves everything for a resume: its process goes, or its store takes nothing. */
export function isForResume(reason: unknown): boolean {
  return reason instanceof Stopped ? reason.how === "pause" : isStatewrightError(reason) && reason.kind === "store";
}
