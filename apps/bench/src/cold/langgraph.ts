/** Child process of B19 for LangGraph.js: measures from the definition of a graph to the start of its first node. */
import type { LangGraph } from "../peers/langgraph.ts";
import { type ColdShape, createColdGraph, printAndExit } from "./shape.ts";

const [shape, size, entry = ""] = process.argv.slice(2);
const declared = createColdGraph(shape as ColdShape, Number(size));
const { StateGraph, Annotation } = (await import(entry)) as LangGraph;

const cpu = process.cpuUsage();
const wall = performance.now();
const builder = new StateGraph(Annotation.Root({ n: Annotation() }));
for (const [index, [name]] of declared.entries())
  builder.addNode(name, () => (index === 0 ? printAndExit(cpu, wall) : {}));
builder.addEdge("__start__", "node0");
for (const [name, targets] of declared)
  for (const target of targets.length === 0 ? ["__end__"] : targets) builder.addEdge(name, target);
await builder.compile().invoke({ n: 0 });
