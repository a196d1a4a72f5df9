import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getState,
  memoryStore,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import { getFailure } from "../../support/failure.ts";
import { toUntyped } from "../../support/from-javascript.ts";

const Flash = defineState({ log: channel.list(z.string()), flash: channel.ephemeral(z.string()) });
const graph = defineGraph({ name: "forked", state: Flash, interrupts: { go: z.boolean() } })
  .nodes({
    a: () => ({ flash: "x" }),
    b: async (state, { interrupt }) => ({ log: [`${state.flash} ${await interrupt("go")}`] }),
  })
  .edges({ [START]: "a", a: "b", b: END });

test("the next tasks of a fork see exactly the state of the original, including ephemeral channels [E43]", async () => {
  const store = memoryStore();
  await run(graph, { store, thread: "t" }).result;
  const { checkpointId } = await getState(graph, { store, thread: "t" });
  const branch = await fork(graph, { store, thread: "t", at: checkpointId, name: "other" });
  expect((await resume(graph, { store, thread: "t", branch }).result).status).toBe("waiting");
  for (const each of ["main", branch]) {
    const { state } = await resume(graph, { store, thread: "t", branch: each, answers: { go: true } }).result;
    expect(state).toEqual({ log: ["x true"], flash: undefined });
  }
});

test("an edit of an ephemeral channel is seen by the next tasks of the fork [E43]", async () => {
  const store = memoryStore();
  await run(graph, { store, thread: "t" }).result;
  const { checkpointId } = await getState(graph, { store, thread: "t" });
  const branch = await fork(graph, { store, thread: "t", at: checkpointId, name: "edited", update: { flash: "y" } });
  await resume(graph, { store, thread: "t", branch }).result;
  const { state } = await resume(graph, { store, thread: "t", branch, answers: { go: true } }).result;
  expect(state.log).toEqual(["y true"]);
});

test("a fork does not count the steps of its source run, also after a crash before its first step", async () => {
  const steps = defineGraph({ name: "steps", state: Flash })
    .nodes({ a: () => ({ log: ["a"] }), b: () => ({ log: ["b"] }), c: () => ({ log: ["c"] }) })
    .edges({ [START]: "a", a: "b", b: "c", c: END });
  const store = memoryStore();
  await run(steps, { store, thread: "t" }).result;
  const at = (await store.history("t", { limit: 10 })).find(({ nodes }) => nodes.includes("b"))?.id ?? 0;
  const branch = await fork(steps, { store, thread: "t", at, name: "other" });
  const dying = createCrashingStore(store.peer(), 2, "before");
  resume(steps, { store: dying.store, thread: "t", branch, maxSteps: 1 });
  await dying.dead;
  const { state } = await resume(steps, { store, thread: "t", branch, maxSteps: 1 }).result;
  expect(state.log).toEqual(["a", "b", "c"]);
});

test("an invalid fork names the missing thread, the missing checkpoint, or the refused value and the reason", async () => {
  const store = memoryStore();
  await run(graph, { store, thread: "t" }).result;
  const failed = (options: { thread?: string; at?: number; update?: object }) =>
    getFailure(toUntyped(fork)(graph, { store, thread: "t", at: 1, name: "other", ...options }));
  expect((await failed({ thread: "other" })).code).toBe("unknown_thread");
  expect((await failed({ at: 99 })).code).toBe("unknown_checkpoint");
  const unfit = await failed({ update: { flash: 5 } });
  expect(unfit.code).toBe("invalid_update");
  expect(unfit.message).toContain('the channel "flash" is refused by its schema: Invalid input: expected string');
});
