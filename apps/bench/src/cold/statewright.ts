/**
 * Child process of B19 for Statewright: measures from the definition of a graph to the start of its first node, or to
 * its compiled machine.
 */
import { defineGraph, defineState, END, run, START } from "statewright";
import * as z from "zod";
import { type ColdShape, createColdGraph, printAndExit } from "./shape.ts";

const [shape, size, until] = process.argv.slice(2);
const declared = createColdGraph(shape as ColdShape, Number(size));

const cpu = process.cpuUsage();
const wall = performance.now();
const nodes = Object.fromEntries(
  declared.map(([name], index) => [name, () => (index === 0 ? printAndExit(cpu, wall) : undefined)]),
);
const edges: Record<string, string | readonly string[]> = Object.fromEntries(
  declared.map(([name, targets]) => [name, targets.length === 0 ? END : targets]),
);
const graph = defineGraph({ name: "cold", state: defineState({ n: z.number().default(0) }) })
  .nodes(nodes)
  .edges({ ...edges, [START]: "node0" });
if (until === "machine" && graph.machine.id === "cold") printAndExit(cpu, wall);
await run(graph, { input: {} }).result;
