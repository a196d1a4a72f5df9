/** What is wrong with a definition: each problem with a code, a place and a hint, all of them in one error. */
import { StatewrightError } from "../base/errors.ts";

/** One thing that is wrong with a graph. */
export interface GraphProblem {
  readonly code:
    | "reserved_name"
    | "missing_start"
    | "unknown_node"
    | "missing_edge"
    | "unreachable_node"
    | "no_way_out"
    | "join_never_fills"
    | "route_without_targets"
    | "task_without_send"
    | "tools_without_messages"
    | "empty_tool_node"
    | "not_a_node"
    | "not_an_edge"
    | "unknown_option"
    | "unknown_channel"
    | "private_input"
    | "missing_input"
    | "unknown_interrupt"
    | "cannot_ask"
    | "drawn_subgraph"
    | "kept_subgraph_sent"
    | "once_subgraph"
    | "unsaved_subgraph"
    | "history_state"
    | "inline_actor"
    | "missing_actor"
    | "unsupported_actor"
    | "live_actor"
    | "unknown_effect";
  readonly node: string;
  readonly message: string;
  readonly hint: string;
}

/** Throw `invalid_graph` with all problems of a definition, if there are any. */
export function refuseProblems(kind: "graph" | "machine", name: string, problems: readonly GraphProblem[]): void {
  if (problems.length === 0) return;
  throw new StatewrightError("invalid_graph", {
    what: `the ${kind} "${name}" has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}: ${problems.map((problem) => `${problem.message} (${problem.hint})`).join("; ")}`,
    next: "Mend the definition",
    place: { graph: name },
    details: problems,
  });
}
