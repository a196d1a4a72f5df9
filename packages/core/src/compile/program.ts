/** Programs at definition: what a graph may do, as a graph of nodes or as a user-written machine. */
import type { GraphDefinition } from "../define/graph.ts";
import { getMachineDefinition } from "./durable-machine.ts";

/** Definition half of a program; its run half is `Program`. */
export interface ProgramDefinition {
  readonly name: "graph" | "machine";
  /** With its article, for messages. */
  readonly title: string;
  /** True when it can run as a subgraph or as a tool. */
  readonly isNestable: boolean;
  /** True when its guards and actions have names: for JSON, and for an exploration of its states. */
  readonly isReadable: boolean;
  /** True when a migration can rename interrupts, tools and inner graphs besides states. */
  readonly hasNamedParts: boolean;
}

const graphDefinition: ProgramDefinition = Object.freeze({
  name: "graph",
  title: "a graph",
  isNestable: true,
  isReadable: true,
  hasNamedParts: true,
});

const machineDefinition: ProgramDefinition = Object.freeze({
  name: "machine",
  title: "a user-written machine",
  isNestable: false,
  isReadable: false,
  hasNamedParts: false,
});

/** Returns the definition half of the program of a graph. */
export function getProgramDefinition(graph: GraphDefinition): ProgramDefinition {
  return getMachineDefinition(graph) === undefined ? graphDefinition : machineDefinition;
}
