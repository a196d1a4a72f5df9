/** The same graph with some of its parts replaced. */
import type { Graph, GraphDefinition, GraphTypes } from "@statewright/core";

/** What may be replaced; nodes keep their names and order. */
export type GraphParts = Partial<Pick<GraphDefinition, "nodes" | "edges" | "middleware" | "tools">>;

/** A graph like this one, with these parts in the place of its own. The original is not touched. */
export function graphWith<Types extends GraphTypes>(graph: Graph<Types>, parts: GraphParts): Graph<Types> {
  const own = Object.getOwnPropertyDescriptors(graph);
  const replaced = Object.fromEntries(
    Object.entries(parts).map(([name, value]) => [name, { value, enumerable: true }]),
  ) as PropertyDescriptorMap;
  const prototype: unknown = Object.getPrototypeOf(graph);
  return Object.freeze(Object.create(prototype as object | null, { ...own, ...replaced }) as Graph<Types>);
}

/** A runtime of a body with some of its parts replaced; the others, getters too, are the original's. */
export function runtimeWith<Runtime extends object>(runtime: Runtime, parts: Partial<Runtime>): Runtime {
  const replaced = Object.fromEntries(
    Object.entries(parts).map(([name, value]) => [name, { value, enumerable: true }]),
  ) as PropertyDescriptorMap;
  return Object.create(runtime, replaced) as Runtime;
}
