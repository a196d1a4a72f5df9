/** Graph and options of a test run. */
import type { Graph, GraphTypes, Model, RunOptions, Store } from "@statewright/core";
import type { Order } from "../order/order.ts";
import type { VirtualClock } from "../virtual-clock.ts";
import type { StartingPoint } from "./start-checkpoint.ts";

/** Options of `testRun` in addition to the run options of the graph. */
export interface TestOptions<Input> {
  /** Input of the run. */
  readonly input?: Input;
  /** Replaces every model of the graph. */
  readonly model?: Model;
  /** `virtual` (the default) skips every wait; `real` waits; or a virtual clock created by the test. */
  readonly clock?: "virtual" | "real" | VirtualClock;
  /** Seed of the random source of a virtual clock. Default 1. */
  readonly seed?: number;
  /**
   * Store of the thread: a memory store by default. For crashes with another store, pass a function that opens the
   * store.
   */
  readonly store?: Store | (() => Store);
  /** Starts before this node with this state, instead of with an input. */
  readonly startAt?: StartingPoint;
  /** Order of completion of concurrent work, from `everyOrder`. */
  readonly order?: Order;
}

/** Input of a graph under test; an agent also accepts the text of a user message. */
export type TestInput<Types extends GraphTypes, Words> = unknown extends Words
  ? Types["input"]
  : Words | Types["input"];

/** Options of `testRun`. */
export type TestRunOptions<Types extends GraphTypes, Words> = Omit<RunOptions<Types>, "store" | "world" | "input"> &
  TestOptions<TestInput<Types, Words>>;

/** Graph, or an agent with a function that converts text to its input. */
export type Testable<Types extends GraphTypes, Words> = Graph<Types> & {
  /** Converts a text to the input of the graph. */
  readonly toInput?: (words: Words) => object;
};

/** Function that creates the graph for each process, so that a crash also drops the variables of its functions. */
export type GraphFactory<Types extends GraphTypes, Words> = () => Testable<Types, Words>;
