/** Validates graphs of programs without types. */
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";

/** Throws `invalid_option` for an invalid graph. */
export function checkGraphOption(call: string, graph: unknown): void {
  if (isPlainObject(graph) && graph["nodes"] instanceof Map && graph["edges"] instanceof Map) return;
  throw invalidOption({
    where: call,
    expected: "a graph",
    got: graph,
    fix: "Pass the result of defineGraph(…).nodes(…).edges(…), durableMachine(…) or createAgent(…)",
  });
}
