/** Definition half of programs: resolved for a graph, and implemented here for graphs of nodes. */
import type { GraphDefinition } from "../define/graph.ts";
import { getMachineDefinition } from "./durable-machine.ts";
import { createGraphOutline } from "./graph-outline.ts";
import { machineProgramDefinition } from "./programs/machine-program-definition.ts";
import type { ProgramDefinition } from "./programs/program-definition.ts";

/** Returns the definition half of the program of a graph. */
export function getProgramDefinition(graph: GraphDefinition): ProgramDefinition {
  return getMachineDefinition(graph) === undefined ? graphProgramDefinition : machineProgramDefinition;
}

/** Definition half of a graph of nodes. */
const graphProgramDefinition: ProgramDefinition = Object.freeze({
  name: "graph",
  title: "a graph",
  isNestable: true,
  isReadable: true,
  hasNamedParts: true,
  outline: createGraphOutline,
  describeShape: () => null,
} satisfies ProgramDefinition);
