/** Program of a simulation: a graph, its input, and a function that answers its interrupts. */
import type { Graph, OpenInterrupt } from "@statewright/core";
import type { ExternalWorld } from "./external-world.ts";

/** Program that processes run on one thread. */
export interface SimulatedProgram {
  readonly graph: Graph;
  readonly input?: object;
  /** Answers an interrupt; equal interrupts must get equal answers. */
  readonly answer?: (interrupt: OpenInterrupt, findEffect: ExternalWorld["findEffect"]) => unknown;
  /** Forks a finished run from one of its checkpoints: relative position, from 0 for the first checkpoint to 1. */
  readonly forkAt?: number;
}

/** Creates the program for each process, as at process start. All external effects must go through `outside`. */
export type ProgramFactory = (outside: ExternalWorld) => SimulatedProgram;

/** Thread of every simulated program. */
export const simulatedThread = "simulated";

/** Branch of the fork. */
export const forkBranch = "another";
