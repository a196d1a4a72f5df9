/** State of a graph as a frame. */
import { toWireValues } from "../to-wire-values.ts";
import type { V2Frame } from "./v2-frame.ts";
import type { V2Graph } from "./v2-memory.ts";

/** Returns the state of a graph; undefined while the state is unknown. */
export function createValuesFrame({ values, namespace }: V2Graph, at: number): V2Frame | undefined {
  if (values === undefined) return undefined;
  return { method: "values", channel: "values", namespace, at, data: toWireValues(values) };
}
