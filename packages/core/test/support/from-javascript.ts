/** Untyped values and calls: the only place where a test may claim a type that a value does not have. */
import { defineGraph, type Graph } from "../../src/index.ts";

/** Returns the value with the requested type, without a check. */
export function fromJavaScript<Claimed>(value: unknown): Claimed {
  if (claims<Claimed>(value)) return value;
  throw new Error("a claim is never refused");
}

/** Unchecked cast, as in JavaScript. */
function claims<Claimed>(value: unknown): value is Claimed {
  return value === undefined || true;
}

/** Returns the function without its parameter types, as untyped code sees it. */
export function toUntyped<Result>(typed: (...given: never) => Result): (...given: unknown[]) => Result {
  return fromJavaScript<(...given: unknown[]) => Result>(typed);
}

/** Creates a graph from unchecked parts. */
export function defineUntypedGraph(options: unknown, nodes: unknown, edges: unknown): Graph {
  const withoutNodes = toUntyped(defineGraph)(options);
  const withoutEdges = toUntyped(withoutNodes.nodes)(nodes);
  return fromJavaScript<Graph>(toUntyped(withoutEdges.edges)(edges));
}
