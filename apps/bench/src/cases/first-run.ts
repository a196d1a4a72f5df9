/** The first run of a graph whose nodes run side by side: its definition, its machine, and each node's way through it. */
import { cpuUsage } from "node:process";
import { defineGraph, defineState, END, run, START } from "statewright";
import * as z from "zod";
import { type Case, type Contender, doublings } from "../case.ts";
import { coldGraph } from "../cold/shape.ts";
import type { Sample } from "../measure.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";

/** One graph is too little work to be measured by itself. */
const graphs = 10;

export function firstRun({ langgraph }: Peers): Case {
  return {
    id: "B19 first run",
    title: "definition and first run of 100 nodes side by side, in a warm process",
    unit: "node",
    budget: { cpuUs: 50, text: "50 µs (5 ms for 100), linear" },
    size: 100,
    contenders: [
      contender("statewright", "ours", ours),
      ...(langgraph === undefined ? [] : [contender("LangGraph.js", "peer", theirs(langgraph))]),
      contender("Promise.all of as many functions", "limit", bare),
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.25 }],
  };
}

function contender(name: string, role: Contender["role"], once: (size: number) => Promise<unknown>): Contender {
  return { name, role, growth: doublings(25), open: () => ({ run: (size) => measured(() => once(size)) }) };
}

async function measured(once: () => Promise<unknown>): Promise<Sample> {
  const cpu = cpuUsage();
  const wall = performance.now();
  for (let graph = 0; graph < graphs; graph++) await once();
  const wallUs = (performance.now() - wall) * 1_000;
  const { user, system } = cpuUsage(cpu);
  return { cpuUs: (user + system) / graphs, wallUs: wallUs / graphs };
}

function ours(size: number): Promise<unknown> {
  const declared = coldGraph("parallel", size);
  const edges: Record<string, string | readonly string[]> = Object.fromEntries(
    declared.map(([name, targets]) => [name, targets.length === 0 ? END : targets]),
  );
  const graph = defineGraph({ name: "wide", state: defineState({ n: z.number().default(0) }) })
    .nodes(Object.fromEntries(declared.map(([name]) => [name, () => undefined])))
    .edges({ ...edges, [START]: "node0" });
  return run(graph, { input: {} }).result;
}

function theirs({ StateGraph, Annotation }: LangGraph): (size: number) => Promise<unknown> {
  return (size) => {
    const builder = new StateGraph(Annotation.Root({ n: Annotation() }));
    const declared = coldGraph("parallel", size);
    for (const [name] of declared) builder.addNode(name, () => ({}));
    builder.addEdge("__start__", "node0");
    for (const [name, targets] of declared)
      for (const target of targets.length === 0 ? ["__end__"] : targets) builder.addEdge(name, target);
    return builder.compile().invoke({ n: 0 });
  };
}

function bare(size: number): Promise<unknown> {
  return Promise.all(coldGraph("parallel", size).map(async ([name]) => name));
}
