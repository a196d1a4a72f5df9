/** B3: many trivial tasks, sent at once, whose results are folded into one list. */
import { defineGraph, defineState, END, list, run, START, sends, task } from "statewright";
import * as z from "zod";
import { type Case, type Contender, doublings } from "../case.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";

const fan = defineGraph({
  name: "fan",
  state: defineState({ items: z.array(z.number()), done: list(z.number()) }),
})
  .nodes({ split: () => undefined, work: task(z.number(), (_state, { input }) => ({ done: [input] })) })
  .edges({ [START]: "split", split: sends("work", (state) => state.items), work: END });

export function fanOut({ langgraph }: Peers): Case {
  return {
    id: "B3",
    title: "fan-out of 3,000 trivial sends",
    unit: "send",
    budget: { cpuUs: 50, text: "50 µs (0.15 s for 3,000), linear" },
    size: 3_000,
    contenders: [
      {
        name: "statewright",
        role: "ours",
        growth: [...doublings(3_000), 30_000],
        open: () => ({
          run: async (size) => {
            await run(fan, { input: { items: numbers(size) } }).result;
            return undefined;
          },
        }),
      },
      ...(langgraph === undefined ? [] : [peerFanOut(langgraph)]),
      { name: "Promise.all of async functions", role: "limit", open: () => ({ run: bare }) },
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.05 }],
  };
}

function numbers(size: number): number[] {
  return Array.from({ length: size }, (_, index) => index);
}

async function bare(size: number): Promise<undefined> {
  await Promise.all(numbers(size).map(async (item) => ({ done: [item] })));
}

function peerFanOut({ StateGraph, Annotation, Send }: LangGraph): Contender {
  const done = Annotation({ reducer: (all: number[], more: number[]) => all.concat(more), default: () => [] });
  const graph = new StateGraph(Annotation.Root({ items: Annotation(), item: Annotation(), done }))
    .addNode("split", () => ({}))
    .addNode("work", (state: { readonly item: number }) => ({ done: [state.item] }))
    .addEdge("__start__", "split")
    .addConditionalEdges(
      "split",
      (state: { readonly items: readonly number[] }) => state.items.map((item) => new Send("work", { item })),
      ["work"],
    )
    .addEdge("work", "__end__")
    .compile();
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: doublings(250),
    open: () => ({
      run: async (size) => {
        await graph.invoke({ items: numbers(size) });
        return undefined;
      },
    }),
  };
}
