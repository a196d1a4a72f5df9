/** Programs at definition: resolves the definition half of a graph's program. */
import type { GraphDefinition } from "../define/graph.ts";
import { getMachineDefinition } from "./durable-machine.ts";
import { graphProgramDefinition } from "./programs/graph-program-definition.ts";
import { machineProgramDefinition } from "./programs/machine-program-definition.ts";
import type { ProgramDefinition } from "./programs/program-definition.ts";

/** Returns the definition half of the program of a graph. */
export function getProgramDefinition(graph: GraphDefinition): ProgramDefinition {
  return getMachineDefinition(graph) === undefined ? graphProgramDefinition : machineProgramDefinition;
}
