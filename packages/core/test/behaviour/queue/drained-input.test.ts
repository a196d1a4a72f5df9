/** A queued input whose handle is drained stays in the queue, and its process does not start it. */
import { expect, test } from "vitest";
import * as z from "zod";
import { channel, defineGraph, defineState, END, memoryStore, resume, run, START } from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";

test.each(["cancel", "rollback"] as const)(
  "an input with onBusy %s that is drained when it is queued is not started by its process [E27]",
  async (onBusy) => {
    let entered = 0;
    const graph = defineGraph({
      name: "asks",
      state: defineState({ log: channel.list(z.string()) }),
      interrupts: { ask: z.boolean() },
    })
      .nodes({
        a: async (_state, { interrupt }) => {
          entered += 1;
          return { log: [String(await interrupt("ask"))] };
        },
      })
      .edges({ [START]: "a", a: END });
    const at = { store: memoryStore(), thread: "t" } as const;
    expect((await run(graph, { ...at, input: {} }).result).status).toBe("waiting");
    const queued = run(graph, { ...at, input: {}, onBusy });
    queued.on(({ type }) => {
      if (type === "run.queued") queued.drain("the process stops");
    });
    expect((await queued.result).status).toBe("queued");
    expect(entered).toBe(1);
    // Before the fix the input had claimed the thread in the background, and this resume was refused as busy.
    expect((await resume(graph, { ...at, answers: { ask: true } }).result).status).toBe("cancelled");
    expect((await listRuns(at.store, { thread: "t" })).map(({ id }) => id)).toContain(queued.id);
  },
);
