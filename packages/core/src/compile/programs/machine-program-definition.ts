/** Definition half of a user-written machine. */
import type { Json } from "../../base/json.ts";
import type { GraphDefinition } from "../../define/graph.ts";
import { getMachineDefinition, listStateIds, type MachineDefinition } from "../durable-machine.ts";
import { createMachineOutline } from "../machine-outline.ts";
import type { ProgramDefinition } from "./program-definition.ts";

/** Definition half of a user-written machine. */
export const machineProgramDefinition: ProgramDefinition = Object.freeze({
  name: "machine",
  title: "a user-written machine",
  isNestable: false,
  isReadable: false,
  hasNamedParts: false,
  outline: (graph, path) => createMachineOutline(getDefinition(graph).machine, path),
  describeShape: (graph) => describeMachine(getDefinition(graph)),
} satisfies ProgramDefinition);

function getDefinition(graph: GraphDefinition): MachineDefinition {
  return getMachineDefinition(graph) as MachineDefinition;
}

/** Describes the states, events (including delays) and actors of a machine. */
function describeMachine({ machine, actors }: MachineDefinition): Json {
  const described = [...actors].map(([name, actor]) => [
    name,
    actor.kind === "promise" ? actor.effect : describeMachine(actor.definition),
  ]);
  return { states: listStateIds(machine), events: [...machine.events], actors: described };
}
