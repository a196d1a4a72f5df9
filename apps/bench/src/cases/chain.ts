/** B1 chain: one run of a compiled graph of 50 nodes in a chain. */
import { defineGraph, defineState, END, type Graph, run, START } from "statewright";
import * as z from "zod";
import type { Case, Contender } from "../case.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";

const length = 50;
const names = Array.from({ length }, (_, index) => `node${index}`);

function getNextName(name: string): string | undefined {
  return names[names.indexOf(name) + 1];
}

const increment = (state: { readonly n: number }): { readonly n: number } => ({ n: state.n + 1 });

const edges: Record<string, string> = Object.fromEntries(names.map((name) => [name, getNextName(name) ?? END]));

const chain = defineGraph({ name: "chain", state: defineState({ n: z.number() }) })
  .nodes(Object.fromEntries(names.map((name) => [name, increment])))
  .edges({ ...edges, [START]: "node0" });

export function createChainCase({ langgraph }: Peers): Case {
  return {
    id: "B1 chain",
    title: `one run of a compiled chain of ${length} nodes, no store`,
    unit: "run",
    budget: { cpuUs: 2_000, text: "2 ms" },
    size: 40,
    contenders: [
      { name: "statewright", role: "ours", open: () => ({ run: runChain }) },
      ...(langgraph === undefined ? [] : [createPeerContender(langgraph)]),
      { name: `${length} async functions`, role: "limit", open: () => ({ run: runBareChain }) },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.1 }],
  };
}

async function runChain(size: number): Promise<undefined> {
  for (let index = 0; index < size; index++) await run(chain as Graph, { input: { n: 0 } }).result;
}

async function runBareChain(size: number): Promise<undefined> {
  for (let index = 0; index < size; index++) {
    let state = { n: 0 };
    for (const _name of names) state = await (async () => increment(state))();
  }
}

function createPeerContender({ StateGraph, Annotation }: LangGraph): Contender {
  const builder = new StateGraph(Annotation.Root({ n: Annotation() }));
  for (const name of names) builder.addNode(name, increment);
  builder.addEdge("__start__", "node0");
  for (const name of names) builder.addEdge(name, getNextName(name) ?? "__end__");
  const graph = builder.compile();
  return {
    name: "LangGraph.js",
    role: "peer",
    size: 10,
    open: () => ({
      run: async (size) => {
        for (let index = 0; index < size; index++) await graph.invoke({ n: 0 }, { recursionLimit: 1_000 });
        return undefined;
      },
    }),
  };
}
