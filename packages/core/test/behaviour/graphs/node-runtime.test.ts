import { expect, test } from "vitest";
import * as z from "zod";
import { defineGraph, defineState, END, run, START } from "../../../src/index.ts";

test("a spread copy of the node runtime has the working signal, identity and steps of the original", async () => {
  const seen: unknown[] = [];
  const graph = defineGraph({ name: "copies", state: defineState({ n: z.number().default(0) }) })
    .nodes({
      work: async (_state, runtime) => {
        const copy = { ...runtime };
        seen.push(copy.signal === runtime.signal, copy.run.node, copy.signal.aborted);
        return { n: await copy.step("once", () => 7) };
      },
    })
    .edges({ [START]: "work", work: END });
  const handle = run(graph, {});
  expect((await handle.result).state).toEqual({ n: 7 });
  expect(seen).toEqual([true, "work", false]);
});

test("a node signal first read after the cancel is already aborted", async () => {
  let late: AbortSignal | undefined;
  const graph = defineGraph({ name: "late", state: defineState({ n: z.number().default(0) }) })
    .nodes({
      work: async (_state, runtime) => {
        handle.cancel("enough");
        await new Promise(setImmediate);
        late = runtime.signal;
        return { n: 1 };
      },
    })
    .edges({ [START]: "work", work: END });
  const handle = run(graph, {});
  expect((await handle.result).status).toBe("cancelled");
  await new Promise(setImmediate);
  expect(late?.aborted).toBe(true);
});
