/** B2 state: a superstep that changes one small channel beside a large state: the state must not be written, copied or walked. */
import { defineGraph, defineState, END, route, run, START, sqliteStore } from "statewright";
import * as z from "zod";
import { type Case, type Contender, doublings, type Work } from "../case.ts";
import type { Sample } from "../measure.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import { createRunClock } from "../run-clock.ts";
import { scratchFile } from "../scratch-files.ts";

/** Supersteps of a round; the first one, in whose checkpoint the state is, does not count. */
const steps = 1_000;
const stepsOfPeer = 50;

export function superstepBesideState({ langgraph }: Peers): Case {
  return {
    id: "B2 state",
    title: "superstep saved to SQLite that counts, beside a state of 40 KB, synchronous=NORMAL",
    unit: "superstep",
    budget: { cpuUs: 60, text: "60 µs, whatever the size of the state" },
    disk: true,
    size: 40,
    sizeOf: "data",
    steady: true,
    steepest: 0.3,
    contenders: [
      { name: "statewright", role: "ours", growth: doublings(10), open: ours },
      ...(langgraph === undefined ? [] : [theirs(langgraph)]),
      { name: "the state as JSON, once", role: "limit", open: () => ({ run: encoded }) },
    ],
    checks: [{ of: "statewright", to: "LangGraph.js", measure: "cpu", atMost: 0.2 }],
  };
}

/** A state of so many KB: rows of 1 KB each, as documents or findings are. */
function rowsOf(kilobytes: number): string[] {
  return Array.from({ length: kilobytes }, (_, nth) => `${nth} `.padEnd(1_000, "row "));
}

const graph = defineGraph({
  name: "beside",
  state: defineState({ n: z.number(), limit: z.number(), rows: z.array(z.string()) }),
})
  .nodes({
    work: (state) => {
      if (state.n === 1) clock.start();
      return { n: state.n + 1 };
    },
  })
  .edges({ [START]: "work", work: route(["work", END], (state) => (state.n < state.limit ? "work" : END)) });

/** Runs from the second superstep to the end of the run. */
const clock = createRunClock();

function ours(): Work {
  const file = scratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  let runs = 0;
  return {
    run: async (kilobytes) => {
      const input = { n: 0, limit: steps + 1, rows: rowsOf(kilobytes) };
      await run(graph, { store, thread: `thread-${runs++}`, input, maxSteps: Number.POSITIVE_INFINITY }).result;
      return clock.stop(steps);
    },
    close: () => {
      store.close();
      file.remove();
      return undefined;
    },
  };
}

async function encoded(kilobytes: number): Promise<Sample> {
  const state = { n: 0, limit: steps, rows: rowsOf(kilobytes) };
  clock.start();
  let bytes = 0;
  for (let nth = 0; nth < steps; nth++) bytes += JSON.stringify(state).length;
  const sample = clock.stop(steps);
  if (bytes < steps * kilobytes * 1_000) throw new Error(`a state of ${kilobytes} KB came to ${bytes / steps} bytes`);
  return sample;
}

function theirs({ StateGraph, Annotation, SqliteSaver }: LangGraph): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: doublings(10),
    open: () => {
      const file = scratchFile("theirs.db");
      const saver = SqliteSaver.fromConnString(file.path);
      const looping = new StateGraph(Annotation.Root({ n: Annotation(), limit: Annotation(), rows: Annotation() }))
        .addNode("work", (state: { readonly n: number }) => {
          if (state.n === 1) clock.start();
          return { n: state.n + 1 };
        })
        .addEdge("__start__", "work")
        .addConditionalEdges(
          "work",
          (state: { readonly n: number; readonly limit: number }) => (state.n < state.limit ? "work" : "__end__"),
          ["work", "__end__"],
        )
        .compile({ checkpointer: saver });
      let runs = 0;
      return {
        run: async (kilobytes) => {
          const config = { recursionLimit: 1_000, durability: "sync", configurable: { thread_id: `t${runs++}` } };
          await looping.invoke({ n: 0, limit: stepsOfPeer + 1, rows: rowsOf(kilobytes) }, config);
          return clock.stop(stepsOfPeer);
        },
        close: () => {
          saver.db.close();
          file.remove();
          return undefined;
        },
      };
    },
  };
}
