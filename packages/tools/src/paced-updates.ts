/** Rate-limited partial results of a tool. */
import type { Schedule, ToolOutput, ToolRuntime } from "@statewright/core";

/** Minimum milliseconds between partial results. */
const minIntervalMs = 100;

/** Emits partial results: the first immediately, later ones after the interval, and always the last state. */
export interface PacedUpdates {
  /** Signals a change of the state. */
  touch(): void;
  /** Stops further partial results. */
  end(): void;
}

/** Creates an emitter of partial results; calls `make` only for an emitted result, and never without a listener. */
export function createPacedUpdates(
  { update }: Pick<ToolRuntime, "update">,
  schedule: Schedule,
  make: () => ToolOutput,
): PacedUpdates {
  if (update === undefined) return { touch: doNothing, end: doNothing };
  let hasChanges = false;
  let cancel: (() => void) | undefined;
  const show = (): void => {
    hasChanges = false;
    cancel = schedule.after(minIntervalMs, () => {
      cancel = undefined;
      if (hasChanges) show();
    });
    update(make());
  };
  return {
    touch: () => {
      hasChanges = true;
      if (cancel === undefined) show();
    },
    end: () => {
      cancel?.();
      cancel = undefined;
    },
  };
}

function doNothing(): void {}
