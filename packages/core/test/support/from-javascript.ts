/** Values and calls as a program without types gives them: the one place where a test may claim a type that a value does not have. */
import { defineGraph, type Graph } from "../../src/index.ts";

/** The value under the type that is asked for, whatever it is. */
export function fromJavaScript<Claimed>(value: unknown): Claimed {
  if (claims<Claimed>(value)) return value;
  throw new Error("a claim is never refused");
}

/** JavaScript checks nothing, and neither does this. */
function claims<Claimed>(value: unknown): value is Claimed {
  return value === undefined || true;
}

/** A function that takes anything, as a program without types sees it. */
export function loose<Result>(typed: (...given: never) => Result): (...given: unknown[]) => Result {
  return fromJavaScript<(...given: unknown[]) => Result>(typed);
}

/** A graph of parts that nobody has checked. */
export function looseGraph(options: unknown, nodes: unknown, edges: unknown): Graph {
  const withoutNodes = loose(defineGraph)(options);
  const withoutEdges = loose(withoutNodes.nodes)(nodes);
  return fromJavaScript<Graph>(loose(withoutEdges.edges)(edges));
}
