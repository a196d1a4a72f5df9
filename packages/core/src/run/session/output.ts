/** Public view of a graph's state: without private channels, and the output of a finished run. */

import { checkSyncResult } from "../../base/async-schema.ts";
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import { describeIssues, parseWith } from "../../base/schema.ts";
import type { Plan } from "../../compile/plan.ts";
import type { State } from "./returns.ts";

/** Returns the state without private channels. */
export function toPublicState({ graph }: Plan, state: State): State {
  if (graph.private.size === 0) return state;
  return Object.freeze(Object.fromEntries(Object.entries(state).filter(([name]) => !graph.private.has(name))));
}

/**
 * Returns the output of a finished run: the public state, parsed with the output schema if there is one. Throws
 * `invalid_output`.
 */
export function readOutput(plan: Plan, state: State): unknown {
  const { name, output } = plan.graph;
  const publicState = toPublicState(plan, state);
  if (output === undefined) return publicState;
  const parsed = parseWith(output, publicState);
  if (parsed.ok) return deepFreeze(parsed.value);
  checkSyncResult(parsed, `the output of graph "${name}"`, { graph: name });
  throw new StatewrightError("invalid_output", {
    what: `the final state of graph "${name}" does not match its output schema: ${describeIssues(parsed.issues)}`,
    next: "Fix the final state or change the output schema, then resume the thread",
    place: { graph: name },
    details: parsed.issues,
  });
}
