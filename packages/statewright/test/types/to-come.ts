/**
 * Types of what is not built yet, so that the programs of the documentation are designed as a whole: when a behaviour
 * arrives, its declaration moves from here into its package unchanged.
 */
import type { Graph, RunRow, Store } from "../../src/index.ts";

/** Which open runs would go on, migrate or park under these graphs. */
export declare function checkRuns(
  store: Store,
  graphs: readonly Graph[],
): Promise<
  readonly { readonly run: RunRow; readonly verdict: "goes on" | "migrates" | "parks"; readonly why: string }[]
>;
