/** B3: many trivial tasks, sent at once, whose results are folded into one list: those that end at once, and those that wait. */
import { defineGraph, defineState, END, list, run, START, sends, task } from "statewright";
import * as z from "zod";
import { type Case, type Contender, doublings } from "../case.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";

type Body = "trivial" | "waiting";

const sizes = [...doublings(3_000), 30_000];

function fanOf(body: Body) {
  const work = body === "trivial" ? done : async (item: number) => afterATurn(item);
  return defineGraph({ name: "fan", state: defineState({ items: z.array(z.number()), done: list(z.number()) }) })
    .nodes({ split: () => undefined, work: task(z.number(), (_state, { input }) => work(input)) })
    .edges({ [START]: "split", split: sends("work", (state) => state.items), work: END });
}

function done(item: number): { readonly done: number[] } {
  return { done: [item] };
}

async function afterATurn(item: number): Promise<{ readonly done: number[] }> {
  await new Promise(setImmediate);
  return done(item);
}

/** What waits is all at work at the same time: its growth shows what the collector has to carry. */
export function fanOut(body: Body, { langgraph }: Peers): Case {
  const fan = fanOf(body);
  return {
    id: body === "trivial" ? "B3" : "B3 waiting",
    title:
      body === "trivial"
        ? "fan-out of 3,000 trivial sends"
        : "fan-out of 3,000 sends that wait for a turn of the event loop",
    unit: "send",
    budget: { cpuUs: 50, text: "50 µs (0.15 s for 3,000), linear" },
    size: 3_000,
    contenders: [
      {
        name: "statewright",
        role: "ours",
        growth: sizes,
        open: () => ({
          run: async (size) => {
            await run(fan, { input: { items: numbers(size) } }).result;
            return undefined;
          },
        }),
      },
      ...(langgraph === undefined ? [] : [peerFanOut(body, langgraph)]),
      { name: "Promise.all of async functions", role: "limit", growth: sizes, open: () => ({ run: bare(body) }) },
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.05 }],
  };
}

function numbers(size: number): number[] {
  return Array.from({ length: size }, (_, index) => index);
}

function bare(body: Body): (size: number) => Promise<undefined> {
  return async (size) => {
    await Promise.all(numbers(size).map(async (item) => (body === "trivial" ? done(item) : afterATurn(item))));
  };
}

function peerFanOut(body: Body, { StateGraph, Annotation, Send }: LangGraph): Contender {
  const folded = Annotation({ reducer: (all: number[], more: number[]) => all.concat(more), default: () => [] });
  const graph = new StateGraph(Annotation.Root({ items: Annotation(), item: Annotation(), done: folded }))
    .addNode("split", () => ({}))
    .addNode("work", ({ item }: { readonly item: number }) => (body === "trivial" ? done(item) : afterATurn(item)))
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
