/** Definition half of a graph of nodes. */
import { createGraphOutline } from "../graph-outline.ts";
import type { ProgramDefinition } from "./program-definition.ts";

/** Definition half of a graph of nodes. */
export const graphProgramDefinition: ProgramDefinition = Object.freeze({
  name: "graph",
  title: "a graph",
  isNestable: true,
  isReadable: true,
  hasNamedParts: true,
  outline: createGraphOutline,
  describeShape: () => null,
} satisfies ProgramDefinition);
