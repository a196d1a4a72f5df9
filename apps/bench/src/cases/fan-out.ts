/** B3: many trivial tasks from one fan-out, reduced to one list: tasks that finish at once, and tasks that wait. */
import { channel, defineGraph, defineState, END, fanOut, inputNode, run, START } from "statewright";
import * as z from "zod";
import { type Case, type Contender, listDoublings } from "../case.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";

type Body = "trivial" | "waiting";

const sizes = [...listDoublings(3_000), 30_000];

function createFanGraph(body: Body) {
  const processItem = body === "trivial" ? createUpdate : async (item: number) => waitOneTurn(item);
  return defineGraph({
    name: "fan",
    state: defineState({ items: z.array(z.number()), done: channel.list(z.number()) }),
  })
    .nodes({ split: () => undefined, work: inputNode(z.number(), (_state, { input }) => processItem(input)) })
    .edges({ [START]: "split", split: fanOut("work", (state) => state.items), work: END });
}

function createUpdate(item: number): { readonly done: number[] } {
  return { done: [item] };
}

async function waitOneTurn(item: number): Promise<{ readonly done: number[] }> {
  await new Promise(setImmediate);
  return createUpdate(item);
}

/** All waiting tasks are active at the same time: growth shows the load on the garbage collector. */
export function createFanOutCase(body: Body, { langgraph }: Peers): Case {
  const fan = createFanGraph(body);
  return {
    id: body === "trivial" ? "B3" : "B3 waiting",
    title:
      body === "trivial"
        ? "fan-out of 3,000 trivial sends"
        : "fan-out of 3,000 sends, each waiting one turn of the event loop",
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
            await run(fan, { input: { items: createNumbers(size) } }).result;
            return undefined;
          },
        }),
      },
      ...(langgraph === undefined ? [] : [createPeerContender(body, langgraph)]),
      {
        name: "Promise.all of async functions",
        role: "limit",
        growth: sizes,
        open: () => ({ run: createBareRun(body) }),
      },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.05 }],
  };
}

function createNumbers(size: number): number[] {
  return Array.from({ length: size }, (_, index) => index);
}

function createBareRun(body: Body): (size: number) => Promise<undefined> {
  return async (size) => {
    await Promise.all(
      createNumbers(size).map(async (item) => (body === "trivial" ? createUpdate(item) : waitOneTurn(item))),
    );
  };
}

function createPeerContender(body: Body, { StateGraph, Annotation, Send }: LangGraph): Contender {
  const doneChannel = Annotation({ reducer: (all: number[], more: number[]) => all.concat(more), default: () => [] });
  const graph = new StateGraph(Annotation.Root({ items: Annotation(), item: Annotation(), done: doneChannel }))
    .addNode("split", () => ({}))
    .addNode("work", ({ item }: { readonly item: number }) =>
      body === "trivial" ? createUpdate(item) : waitOneTurn(item),
    )
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
    growth: listDoublings(250),
    open: () => ({
      run: async (size) => {
        await graph.invoke({ items: createNumbers(size) });
        return undefined;
      },
    }),
  };
}
