/** Graph of the runs that several engines share, and the names of its threads. */
import { defineGraph, defineState, END, START } from "@statewright/core";
import * as z from "zod";

/** Creates the graph. `onStart` is called with the name of a run before its node counts. */
export function createQueuedGraph(onStart: (thread: string) => void) {
  return defineGraph({ name: "queued", state: defineState({ name: z.string(), n: z.number() }) })
    .nodes({
      count: ({ name, n }) => {
        onStart(name);
        return { n: n + 1 };
      },
    })
    .edges({ [START]: "count", count: END });
}

/** Run to queue. */
export interface QueuedRun {
  readonly thread: string;
  readonly tenant: string;
}

/** Lists runs of 100 tenants: the first has all but 100 of them, and is queued first. */
export function listQueuedRuns(count: number): readonly QueuedRun[] {
  return Array.from({ length: count }, (_, nth) => {
    const small = nth - (count - 100);
    const tenant = small < 0 ? "big" : `small-${small % 99}`;
    return { thread: `${tenant}-${nth}`, tenant };
  });
}
