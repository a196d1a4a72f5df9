/** Restores the machine snapshot of a saved thread. */
import { isStatewrightError, StatewrightError } from "../../base/errors.ts";
import type { Control } from "../../checkpoint/checkpoint.ts";
import { createExecutingValue } from "../../compile/compile-machine.ts";
import type { Plan } from "../../compile/plan.ts";
import type { Kernel, Snapshot } from "../kernel/kernel.ts";

/** Plan and kernel of a position. */
export interface PositionSource {
  readonly plan: Plan;
  readonly kernel: Kernel;
}

/**
 * Restores the snapshot of a graph. If another graph version wrote the control state (`changed`), derives the
 * snapshot from the pending nodes.
 */
export function restoreGraphPosition(
  { plan, kernel }: PositionSource,
  { thread, control, changed }: { readonly thread: string; readonly control: Control; readonly changed: boolean },
): Snapshot {
  if (changed) {
    const nodes = control.tasks.map(({ node }) => node).filter((node) => plan.nodes.has(node));
    return kernel.restore(createExecutingValue(plan.graph, nodes));
  }
  return control.machine === null
    ? kernel.enter()[0]
    : restoreMachine(kernel, plan, thread, { control, context: undefined });
}

/** Restores the saved state value. Throws `graph_changed` for a state that the machine does not have. */
export function restoreMachine(
  kernel: Kernel,
  plan: Plan,
  thread: string,
  { control, context }: { readonly control: Control; readonly context: unknown },
): Snapshot {
  try {
    return kernel.restore(control.machine, context, control.pending?.children);
  } catch (cause) {
    throw createGraphChangedError(
      plan,
      thread,
      `is in the state ${JSON.stringify(control.machine)}, which its machine no longer has`,
      cause,
    );
  }
}

function createGraphChangedError(plan: Plan, thread: string, fact: string, cause: unknown): StatewrightError {
  if (isStatewrightError(cause, "graph_changed")) return cause;
  return new StatewrightError("graph_changed", {
    what: `the thread "${thread}" ${fact}`,
    next: `Use the graph that wrote it, or another thread for "${plan.graph.name}"`,
    place: { graph: plan.graph.name, thread },
    cause,
  });
}
