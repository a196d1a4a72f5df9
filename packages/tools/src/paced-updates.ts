/** Partial results of a tool, not more often than anyone can read them. */
import type { Schedule, ToolOutput, ToolRuntime } from "@statewright/core";

/** How long to wait after a partial result, in milliseconds. */
const pauseMs = 100;

/** Shows partial results: the first at once, later ones after a pause, the last state always. */
export interface PacedUpdates {
  /** There is something new to show. */
  touch(): void;
  /** Show nothing more. */
  end(): void;
}

/** Show what `make` gives, whenever there is news; nothing is made while nobody listens. */
export function pacedUpdates(
  { update }: Pick<ToolRuntime, "update">,
  schedule: Schedule,
  make: () => ToolOutput,
): PacedUpdates {
  if (update === undefined) return { touch: nothing, end: nothing };
  let isNew = false;
  let cancel: (() => void) | undefined;
  const show = (): void => {
    isNew = false;
    cancel = schedule.after(pauseMs, () => {
      cancel = undefined;
      if (isNew) show();
    });
    update(make());
  };
  return {
    touch: () => {
      isNew = true;
      if (cancel === undefined) show();
    },
    end: () => {
      cancel?.();
      cancel = undefined;
    },
  };
}

function nothing(): void {}
