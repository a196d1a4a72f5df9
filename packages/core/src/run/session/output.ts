/** What a graph shows of its state: the result without private channels, and the output of a finished run. */

import { checkAnswered } from "../../base/async-schema.ts";
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze } from "../../base/json.ts";
import { issuesText, parseWith } from "../../base/schema.ts";
import type { Plan } from "../../compile/plan.ts";
import type { State } from "./returns.ts";

/** The state without the channels that only nodes see. */
export function shownState({ graph }: Plan, state: State): State {
  if (graph.private.size === 0) return state;
  return Object.freeze(Object.fromEntries(Object.entries(state).filter(([name]) => !graph.private.has(name))));
}

/** What a finished run gives: the state, read by the output schema where there is one. Throws `invalid_output`. */
export function readOutput(plan: Plan, state: State): unknown {
  const { name, output } = plan.graph;
  const shown = shownState(plan, state);
  if (output === undefined) return shown;
  const parsed = parseWith(output, shown);
  if (parsed.ok) return deepFreeze(parsed.value);
  checkAnswered(parsed, `the output of graph "${name}"`, { graph: name });
  throw new StatewrightError("invalid_output", {
    what: `the final state of graph "${name}" does not fit its output: ${issuesText(parsed.issues)}`,
    next: "Lead the graph to a state that its output schema takes, or change the schema, then resume the thread",
    place: { graph: name },
    details: parsed.issues,
  });
}
