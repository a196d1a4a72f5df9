/** Invariants of the emitted events of a run: durable before emission, in order, without a gap. */
import type { RunEvent } from "@statewright/core";
import type { AddViolation, CheckpointLog } from "./checkpoint-log.ts";
import type { EffectLog } from "./effect-log.ts";

/** Logs of the thread, for the comparison with its events. */
export interface ThreadLogs {
  readonly checkpoints: CheckpointLog;
  readonly effects: EffectLog;
  readonly addViolation: AddViolation;
}

/** Creates an event listener for one run. */
export function createEventListener({ checkpoints, effects, addViolation }: ThreadLogs): (event: RunEvent) => void {
  let last: number | undefined;
  /** Runs of inner graphs whose steps are not saved. */
  const unsaved = new Set<string | undefined>();
  return (event) => {
    if (event.type === "step.committed" && event.checkpoint === undefined) unsaved.add(event.within);
    if (durableTypes.has(event.type) && !isWithoutOwnSeq(event, last ?? event.seq)) {
      if (!checkpoints.hasSeq(event.seq))
        addViolation("I8", `${event.type} ${event.seq} was emitted before it was durable`);
      if (last !== undefined && event.seq !== last + 1)
        addViolation("I4", `${event.type} ${event.seq} was emitted after ${last}`);
      last = event.seq;
    } else if (event.type === "tool.completed" && !unsaved.has(event.within)) {
      if (!effects.hasResult(event.task, event.callId))
        addViolation("I8", `the result of ${event.callId} was emitted before it was durable`);
    }
  };
}

/** Types of durable events. */
const durableTypes: ReadonlySet<RunEvent["type"]> = new Set([
  "run.started",
  "run.waiting",
  "run.paused",
  "run.failed",
  "run.cancelled",
  "run.completed",
  "step.committed",
]);

/**
 * Returns true for events that reuse the previous sequence number: the end of a run that could not be saved, and
 * unsaved steps of inner graphs.
 */
function isWithoutOwnSeq(event: RunEvent, last: number): boolean {
  if (event.seq > last) return false;
  if (event.type === "step.committed") return event.checkpoint === undefined;
  return event.type === "run.failed" || event.type === "run.paused";
}
