/** Graphs of parts that are only known when the program runs: the builder's types cannot follow, its checks do. */
import { defineGraph, type Graph } from "@statewright/core";

/** A graph of parts that nobody has typed. Throws `invalid_graph` where they are no sound graph. */
export function looseGraph(options: unknown, nodes: unknown, edges: unknown): Graph {
  const withoutNodes = loose(defineGraph)(options);
  const withoutEdges = loose(withoutNodes.nodes)(nodes);
  return claimed<Graph>(loose(withoutEdges.edges)(edges));
}

/** A function that takes anything. */
export function loose<Result>(typed: (...given: never) => Result): (...given: unknown[]) => Result {
  return claimed<(...given: unknown[]) => Result>(typed);
}

function claimed<Claimed>(value: unknown): Claimed {
  if (claims<Claimed>(value)) return value;
  throw new Error("a claim is never refused");
}

function claims<Claimed>(value: unknown): value is Claimed {
  return value === undefined || true;
}
