/** Graphs built from parts known only at run time, without the builder's types. The builder's checks still run. */
import { defineGraph, type Graph } from "@statewright/core";

/** Creates a graph from untyped parts. Throws `invalid_graph` for invalid parts. */
export function createLooseGraph(options: unknown, nodes: unknown, edges: unknown): Graph {
  const withoutNodes = toUntyped(defineGraph)(options);
  const withoutEdges = toUntyped(withoutNodes.nodes)(nodes);
  return castTo<Graph>(toUntyped(withoutEdges.edges)(edges));
}

/** Removes the parameter types of a function. */
export function toUntyped<Result>(typed: (...given: never) => Result): (...given: unknown[]) => Result {
  return castTo<(...given: unknown[]) => Result>(typed);
}

function castTo<Target>(value: unknown): Target {
  if (isTarget<Target>(value)) return value;
  throw new Error("castTo: unreachable");
}

function isTarget<Target>(value: unknown): value is Target {
  return value === undefined || true;
}
