/** Graph of the queued runs of B20 queue and B20 slots. */
import { setTimeout } from "node:timers/promises";
import { defineGraph, defineState, END, START } from "statewright";
import * as z from "zod";

/** Creates a graph with one node, which waits for a time. */
export function createQueuedCounter(waitMs: number) {
  return defineGraph({ name: "queued-counter", state: defineState({ n: z.number() }) })
    .nodes({
      count: async ({ n }) => {
        if (waitMs > 0) await setTimeout(waitMs);
        return { n: n + 1 };
      },
    })
    .edges({ [START]: "count", count: END });
}
