/** Copies of graphs and runtimes with some parts replaced. */
import type { Graph, GraphDefinition, GraphTypes } from "@statewright/core";

/** Replaceable parts of a graph; nodes keep their names and order. */
export type GraphParts = Partial<Pick<GraphDefinition, "nodes" | "edges" | "middleware" | "tools">>;

/** Returns a copy of the graph with these parts replaced. The original stays unchanged. */
export function replaceGraphParts<Types extends GraphTypes>(graph: Graph<Types>, parts: GraphParts): Graph<Types> {
  const descriptors = Object.getOwnPropertyDescriptors(graph);
  const replaced = Object.fromEntries(
    Object.entries(parts).map(([name, value]) => [name, { value, enumerable: true }]),
  ) as PropertyDescriptorMap;
  const prototype: unknown = Object.getPrototypeOf(graph);
  return Object.freeze(Object.create(prototype as object | null, { ...descriptors, ...replaced }) as Graph<Types>);
}

/** Returns a runtime with some parts replaced; other parts, including getters, come from the original. */
export function replaceRuntimeParts<Runtime extends object>(runtime: Runtime, parts: Partial<Runtime>): Runtime {
  const replaced = Object.fromEntries(
    Object.entries(parts).map(([name, value]) => [name, { value, enumerable: true }]),
  ) as PropertyDescriptorMap;
  return Object.create(runtime, replaced) as Runtime;
}
