/** Guards of a saved transition: no store holds them, and the machine of a graph computes them again without effects. */
import { isStatewrightError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import { parseControl } from "../../checkpoint/control.ts";
import type { Graph } from "../../compile/graph.ts";
import { getPlan } from "../../compile/plan.ts";
import { getProgram } from "../../run/begin.ts";
import { getKernel } from "../../run/kernel/get-kernel.ts";
import type { GuardResult } from "../../run/kernel/kernel.ts";
import type { Codec } from "../../state/codec.ts";

/** Saved transition: the machine before, and the checkpoint after. */
export interface SavedTransition {
  readonly from: Json;
  readonly row: Pick<CheckpointRow, "id" | "branch" | "control" | "nodes" | "source">;
  readonly codec: Codec;
}

/**
 * Returns the guards that the transition of a superstep asked, in order. Undefined for a user-written machine, for a
 * checkpoint that no transition wrote, and for a graph whose machine has no such transition.
 */
export function recomputeGuards(
  graph: Graph,
  { from, row, codec }: SavedTransition,
): readonly GuardResult[] | undefined {
  const { derivesPosition } = getProgram(getPlan(graph));
  if (!derivesPosition || (row.source !== "step" && row.source !== "input")) return undefined;
  const kernel = getKernel(graph);
  const to = [...new Set(parseControl(codec, row).tasks.map(({ node }) => node))];
  try {
    let snapshot = row.source === "input" || from === null ? kernel.enter()[0] : kernel.restore(from);
    for (const node of row.nodes) [snapshot] = kernel.step(snapshot, { type: `xstate.done.actor.${node}` });
    return kernel.step(snapshot, { type: "step.commit", to })[2].guards;
  } catch (thrown) {
    if (isStatewrightError(thrown)) return undefined;
    throw thrown;
  }
}
