/**
 * Types of what is not built yet, so that the programs of the documentation are designed as a whole: when a behaviour
 * arrives, its declaration moves from here into its package unchanged.
 */
import type { Graph, GraphTypes, RunHandle, RunRow, SecretSource, Store } from "../../src/index.ts";

/** A process that serves threads: recovers, fires timers, expires questions, takes queued inputs, drains on stop. */
export interface Engine {
  start(): Promise<void>;
  stop(): Promise<void>;
}

export declare function engine(options: {
  readonly store: Store;
  readonly graphs: readonly Graph[];
  readonly secrets?: SecretSource;
}): Engine;

/** Find the runs of dead processes and continue them. */
export declare function recover(options: {
  readonly store: Store;
  readonly graphs: readonly Graph[];
}): Promise<readonly RunHandle<object>[]>;

/** Which open runs would go on, migrate or park under these graphs. */
export declare function checkRuns(
  store: Store,
  graphs: readonly Graph[],
): Promise<
  readonly { readonly run: RunRow; readonly verdict: "goes on" | "migrates" | "parks"; readonly why: string }[]
>;

/** Edit a state as a node's return would have. */
export declare function updateState<Types extends GraphTypes>(
  graph: Graph<Types>,
  options: {
    readonly store: Store;
    readonly thread: string;
    readonly branch?: string;
    readonly values: Types["update"];
    readonly as?: Types["nodes"];
  },
): Promise<{ readonly checkpointId: number }>;
