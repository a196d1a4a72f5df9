/** First run of a graph with parallel nodes: the definition, the machine, and the transitions of each node. */
import { cpuUsage } from "node:process";
import { defineGraph, defineState, END, run, START } from "statewright";
import * as z from "zod";
import { type Case, type Contender, listDoublings } from "../case.ts";
import { createColdGraph } from "../cold/shape.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import type { Sample } from "../sample.ts";

/** Graphs per sample: one graph is too little work for a timer. */
const graphsPerSample = 10;

export function createFirstRunCase({ langgraph }: Peers): Case {
  return {
    id: "B19 first run",
    title: "definition and first run of 100 parallel nodes, in a warm process",
    unit: "node",
    budget: { cpuUs: 50, text: "50 µs (5 ms for 100), linear" },
    size: 100,
    contenders: [
      createContender("statewright", "ours", runStatewright),
      ...(langgraph === undefined ? [] : [createContender("LangGraph.js", "peer", createPeerRun(langgraph))]),
      createContender("Promise.all of the same number of functions", "limit", runBare),
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.25 }],
  };
}

function createContender(
  name: string,
  role: Contender["role"],
  runGraph: (size: number) => Promise<unknown>,
): Contender {
  return { name, role, growth: listDoublings(25), open: () => ({ run: (size) => measureRuns(() => runGraph(size)) }) };
}

async function measureRuns(runGraph: () => Promise<unknown>): Promise<Sample> {
  const cpu = cpuUsage();
  const wall = performance.now();
  for (let graph = 0; graph < graphsPerSample; graph++) await runGraph();
  const wallUs = (performance.now() - wall) * 1_000;
  const { user, system } = cpuUsage(cpu);
  return { cpuUs: (user + system) / graphsPerSample, wallUs: wallUs / graphsPerSample };
}

function runStatewright(size: number): Promise<unknown> {
  const declared = createColdGraph("parallel", size);
  const edges: Record<string, string | readonly string[]> = Object.fromEntries(
    declared.map(([name, targets]) => [name, targets.length === 0 ? END : targets]),
  );
  const graph = defineGraph({ name: "wide", state: defineState({ n: z.number().default(0) }) })
    .nodes(Object.fromEntries(declared.map(([name]) => [name, () => undefined])))
    .edges({ ...edges, [START]: "node0" });
  return run(graph, { input: {} }).result;
}

function createPeerRun({ StateGraph, Annotation }: LangGraph): (size: number) => Promise<unknown> {
  return (size) => {
    const builder = new StateGraph(Annotation.Root({ n: Annotation() }));
    const declared = createColdGraph("parallel", size);
    for (const [name] of declared) builder.addNode(name, () => ({}));
    builder.addEdge("__start__", "node0");
    for (const [name, targets] of declared)
      for (const target of targets.length === 0 ? ["__end__"] : targets) builder.addEdge(name, target);
    return builder.compile().invoke({ n: 0 });
  };
}

function runBare(size: number): Promise<unknown> {
  return Promise.all(createColdGraph("parallel", size).map(async ([name]) => name));
}
