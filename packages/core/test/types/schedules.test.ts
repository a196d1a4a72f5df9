/** Types of schedules and of delayed runs. */
import { expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  defineGraph,
  defineState,
  END,
  type RunSchedule,
  START,
  type Store,
  schedule,
  submit,
} from "../../src/index.ts";

const graph = defineGraph({ name: "report", version: 1, state: defineState({ topic: z.string() }) })
  .nodes({ write: () => ({}) })
  .edges({ [START]: "write", write: END });
const free = defineGraph({ name: "free", version: 1, state: defineState({ topic: z.string().default("") }) })
  .nodes({ write: () => ({}) })
  .edges({ [START]: "write", write: END });

/** Compiled, never called. */
async function plan(store: Store): Promise<void> {
  const slots = { everyMs: 60_000, thread: "t" } as const;
  expectTypeOf(await schedule(store, { id: "a", graph, input: { topic: "x" }, ...slots })).toEqualTypeOf<RunSchedule>();
  await schedule(store, { id: "a", graph: free, ...slots });
  await schedule(store, { id: "a", graph: free, cron: "0 9 * * *", timeZone: "UTC", threadPerFire: true });
  // @ts-expect-error The graph requires an input.
  await schedule(store, { id: "a", graph, ...slots });
  // @ts-expect-error The input has another type.
  await schedule(store, { id: "a", graph, input: { topic: 5 }, ...slots });
  // @ts-expect-error A schedule has either a pattern or a distance.
  await schedule(store, { id: "a", graph: free, cron: "0 9 * * *", ...slots });
  // @ts-expect-error A schedule has slots.
  await schedule(store, { id: "a", graph: free, thread: "t" });
  // @ts-expect-error A schedule has one thread, or one for each slot.
  await schedule(store, { id: "a", graph: free, everyMs: 60_000 });
  // @ts-expect-error A distance has no time zone.
  await schedule(store, { id: "a", graph: free, timeZone: "UTC", ...slots });
  expectTypeOf((await submit(free, { store, at: new Date() })).startAt).toEqualTypeOf<number | undefined>();
  await submit(free, { store, debounce: { key: "k", ms: 5 } });
  // @ts-expect-error A debounce has a time.
  await submit(free, { store, debounce: { key: "k" } });
}

test("a schedule requires the input of its graph, one kind of slots and one kind of threads [Y7, Y8]", () => {
  expectTypeOf(plan).returns.toEqualTypeOf<Promise<void>>();
});
