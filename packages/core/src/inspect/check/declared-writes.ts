/** Declared writes of a node that would conflict within a single superstep. */
import type { GraphDefinition, NodeRecord } from "../../define/graph.ts";
import { holdsSingleValue } from "../../run/session/returns.ts";

/** Returns the declared writes of a node to single-value channels; empty without a declaration. */
export function listDeclaredWrites(
  { state }: Pick<GraphDefinition, "state">,
  { policy }: NodeRecord,
): readonly string[] {
  return (policy.writes ?? []).filter((name) => holdsSingleValue(state.channels[name]));
}
