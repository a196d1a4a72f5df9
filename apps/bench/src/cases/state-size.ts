/**
 * B2 state: superstep with a write to one small channel of a large state. The superstep must not write, copy or
 * traverse the whole state.
 */
import { defineGraph, defineState, END, route, run, START, sqliteStore } from "statewright";
import * as z from "zod";
import { type Case, type Contender, listDoublings, type Work } from "../case.ts";
import type { LangGraph, Peers } from "../peers/langgraph.ts";
import { createRunClock } from "../run-clock.ts";
import type { Sample } from "../sample.ts";
import { createScratchFile } from "../scratch-files.ts";

/** Supersteps per round. The first superstep does not count: its checkpoint contains the whole state. */
const steps = 1_000;
const peerSteps = 50;

export function createStateSizeCase({ langgraph }: Peers): Case {
  return {
    id: "B2 state",
    title: "superstep of a counter saved to SQLite, with 40 KB of other state, synchronous=NORMAL",
    unit: "superstep",
    budget: { cpuUs: 60, text: "60 µs, independent of the state's size" },
    disk: true,
    size: 40,
    sizeKind: "data",
    steady: true,
    maxGrowth: 0.3,
    contenders: [
      { name: "statewright", role: "ours", growth: listDoublings(10), open: openStatewright },
      ...(langgraph === undefined ? [] : [createPeerContender(langgraph)]),
      { name: "state as JSON, serialized once", role: "limit", open: () => ({ run: encodeStates }) },
    ],
    checks: [{ subject: "statewright", baseline: "LangGraph.js", measure: "cpu", max: 0.2 }],
  };
}

/** Creates a state of the given size: rows of 1 KB, like documents or findings. */
function createRows(kilobytes: number): string[] {
  return Array.from({ length: kilobytes }, (_, nth) => `${nth} `.padEnd(1_000, "row "));
}

const graph = defineGraph({
  name: "state-size",
  state: defineState({ n: z.number(), limit: z.number(), rows: z.array(z.string()) }),
})
  .nodes({
    work: (state) => {
      if (state.n === 1) clock.start();
      return { n: state.n + 1 };
    },
  })
  .edges({ [START]: "work", work: route(["work", END], (state) => (state.n < state.limit ? "work" : END)) });

/** Measures from the second superstep to the end of the run. */
const clock = createRunClock();

function openStatewright(): Work {
  const file = createScratchFile("ours.db");
  const store = sqliteStore(file.path, { durability: "normal" });
  let runs = 0;
  return {
    run: async (kilobytes) => {
      const input = { n: 0, limit: steps + 1, rows: createRows(kilobytes) };
      await run(graph, { store, thread: `thread-${runs++}`, input, maxSteps: Number.POSITIVE_INFINITY }).result;
      return clock.stop(steps);
    },
    close: async () => {
      await store.close();
      file.remove();
      return undefined;
    },
  };
}

async function encodeStates(kilobytes: number): Promise<Sample> {
  const state = { n: 0, limit: steps, rows: createRows(kilobytes) };
  clock.start();
  let bytes = 0;
  for (let nth = 0; nth < steps; nth++) bytes += JSON.stringify(state).length;
  const sample = clock.stop(steps);
  if (bytes < steps * kilobytes * 1_000)
    throw new Error(
      `expected at least ${kilobytes} KB of JSON for a state of ${kilobytes} KB, got ${bytes / steps} bytes`,
    );
  return sample;
}

function createPeerContender({ StateGraph, Annotation, SqliteSaver }: LangGraph): Contender {
  return {
    name: "LangGraph.js",
    role: "peer",
    growth: listDoublings(10),
    open: () => {
      const file = createScratchFile("theirs.db");
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
          await looping.invoke({ n: 0, limit: peerSteps + 1, rows: createRows(kilobytes) }, config);
          return clock.stop(peerSteps);
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
