/** What a node says it writes, where two writes of one superstep would conflict. */
import type { GraphDefinition, NodeRecord } from "../../define/graph.ts";
import { keepsOne } from "../../run/session/returns.ts";

/** The channels that keep one value and that a node says it writes; none where it does not say. */
export function claimedWrites({ state }: Pick<GraphDefinition, "state">, { policy }: NodeRecord): readonly string[] {
  return (policy.writes ?? []).filter((name) => keepsOne(state.channels[name]));
}
