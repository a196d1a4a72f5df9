/** Problems of a graph definition, each with a code, a node and a hint, reported in a single error. */
import { StatewrightError } from "../base/errors.ts";

/** A problem of a graph definition. */
export interface GraphProblem {
  readonly code:
    | "reserved_name"
    | "missing_start"
    | "unknown_node"
    | "missing_edge"
    | "unreachable_node"
    | "no_path_to_end"
    | "join_never_fills"
    | "route_without_targets"
    | "input_node_without_send"
    | "tools_without_messages"
    | "empty_tool_node"
    | "not_a_node"
    | "not_an_edge"
    | "unknown_option"
    | "unknown_channel"
    | "private_input"
    | "missing_input"
    | "unknown_interrupt"
    | "cannot_interrupt"
    | "machine_subgraph"
    | "persistent_subgraph_sent"
    | "once_subgraph"
    | "unpersisted_subgraph"
    | "history_state"
    | "inline_actor"
    | "missing_actor"
    | "unsupported_actor"
    | "live_actor"
    | "unknown_effect"
    | "missing_id"
    | "invalid_id";
  readonly node: string;
  readonly message: string;
  readonly hint: string;
}

/** Throws `invalid_graph` with all problems of a definition, if any. */
export function throwProblems(kind: "graph" | "machine", name: string, problems: readonly GraphProblem[]): void {
  if (problems.length === 0) return;
  throw new StatewrightError("invalid_graph", {
    what: `the ${kind} "${name}" has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}: ${problems.map((problem) => `${problem.message} (${problem.hint})`).join("; ")}`,
    next: "Fix the definition",
    place: { graph: name },
    details: problems,
  });
}
