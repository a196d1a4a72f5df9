/**
 * Types of what is not built yet, so that the programs of the documentation are designed as a whole: when a behaviour
 * arrives, its declaration moves from here into its package unchanged.
 */
import type {
  EffectClass,
  Graph,
  GraphTypes,
  InterruptShape,
  NodeRuntime,
  RunHandle,
  RunRow,
  SecretSource,
  Store,
} from "../../src/index.ts";

/** A graph as a node of another: its state is its own, input and output are mapped. */
export declare function subgraph<Inner extends GraphTypes, State, Context, Interrupts extends InterruptShape, Output>(
  graph: Graph<Inner>,
  mapping: {
    readonly input: (state: State) => Inner["input"];
    readonly output: (result: Inner["state"]) => Output;
    readonly persistence?: "per-call" | "kept" | "none";
  },
): (state: State, runtime: NodeRuntime<Context, Interrupts>) => Promise<Output>;

/** A machine drawn by hand, as far as durable running needs it. */
export interface HandDrawnMachine<Input, Actors extends string> {
  readonly implementations: { readonly actors: { readonly [Name in Actors]?: unknown } };
  readonly types?: { readonly input: Input };
}

/** A hand-drawn machine as a graph that `run` takes; every actor has an effect class, `once` by default. */
export declare function durable<Input extends object, Actors extends string>(
  machine: HandDrawnMachine<Input, Actors>,
  options: { readonly version: number; readonly effects?: { readonly [Name in Actors]?: EffectClass } },
): Graph<GraphTypes & { readonly input: Input }>;

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

/** Walk every reachable control state and prove: no dead end, no lost write, every state can finish. */
export declare function checkGraph(graph: Graph): {
  readonly violations: readonly { readonly rule: string; readonly path: readonly string[]; readonly message: string }[];
};
