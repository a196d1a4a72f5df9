/** A child process of B19: the same in LangGraph.js, from the definition of a graph to the first line of its first node. */
import type { LangGraph } from "../peers/langgraph.ts";
import { type ColdShape, coldGraph, sayAndEnd } from "./shape.ts";

const [shape, size, entry = ""] = process.argv.slice(2);
const declared = coldGraph(shape as ColdShape, Number(size));
const { StateGraph, Annotation } = (await import(entry)) as LangGraph;

const cpu = process.cpuUsage();
const wall = performance.now();
const builder = new StateGraph(Annotation.Root({ n: Annotation() }));
for (const [index, [name]] of declared.entries())
  builder.addNode(name, () => (index === 0 ? sayAndEnd(cpu, wall) : {}));
builder.addEdge("__start__", "node0");
for (const [name, targets] of declared)
  for (const target of targets.length === 0 ? ["__end__"] : targets) builder.addEdge(name, target);
await builder.compile().invoke({ n: 0 });
