/** Threads that are created before their first run, and runs of users and tenants. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getHistory,
  getState,
  listInterrupts,
  memoryStore,
  resume,
  run,
  START,
  type Store,
} from "../../../src/index.ts";
import {
  copyThread,
  createThread,
  deleteThread,
  getRun,
  listRuns,
  listThreads,
  pruneThread,
  updateThread,
} from "../../../src/inspect.ts";
import { getFailure } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const Words = defineState({ word: z.string().default(""), log: channel.list(z.string()) });

/** Graph whose node raises an interrupt for the word "ask", and never ends for the word "slow". */
const wordy = defineGraph({ name: "wordy", state: Words, interrupts: { ok: z.boolean() } })
  .nodes({
    only: async ({ word }, { interrupt, signal }) => {
      if (word === "ask") await interrupt("ok");
      if (word === "slow") await new Promise((resolve) => signal.addEventListener("abort", resolve));
      return { log: [word] };
    },
  })
  .edges({ [START]: "only", only: END });

const other = defineGraph({ name: "other", state: Words })
  .nodes({ only: () => ({ log: ["other"] }) })
  .edges({ [START]: "only", only: END });

function start(store: Store, word: string, more: object = {}) {
  return run(wordy, { store, thread: "t", input: { word }, ...more });
}

test("a created thread has no state before its first run, and reads of it say so [SE4]", async () => {
  const store = memoryStore();
  await createThread(store, { thread: "t", title: "Plan" });
  const failure = await getFailure(getState(wordy, { store, thread: "t" }), "unknown_checkpoint");
  expect(failure.message).toMatch(/no checkpoint on the branch "main".*no input is saved on this branch yet/);
  const entries = [];
  for await (const entry of getHistory(wordy, { store, thread: "t" })) entries.push(entry);
  expect(entries).toEqual([]);
  await getFailure(fork(wordy, { store, thread: "t", at: 1, name: "b" }), "unknown_checkpoint");
  expect(await pruneThread(store, { thread: "t", keepLast: 1 })).toEqual({ threads: 1, checkpoints: 0 });
});

test("the first run of a created thread decides its graph, and keeps title, metadata and idempotency keys [SE4]", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  const made = await createThread(store, { thread: "t", title: "Plan", metadata: { project: "atlas" }, world });
  expect(made).toEqual({
    ...{ id: "t", title: "Plan", metadata: { project: "atlas" }, headBranch: "main" },
    ...{ createdAt: 1_000_000, updatedAt: 1_000_000, status: undefined },
  });
  const salt = (await store.exportThread("t")).keySalt;
  await start(store, "hello", { world }).result;
  const [row] = await listThreads(store, { metadata: { project: "atlas" } });
  expect(row).toMatchObject({ id: "t", graph: "wordy", version: 1, title: "Plan", status: "done" });
  expect((await store.exportThread("t")).keySalt).toBe(salt);
  await getFailure(run(other, { store, thread: "t" }).result, "graph_changed");
});

test("a title can be changed while the thread runs, and the run goes on [SE4]", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  const handle = start(store, "slow", { world });
  await world.waitUntilIdle();
  await world.advance(5);
  const row = await updateThread(store, "t", { title: "Named by a model", metadata: { archived: false }, world });
  expect([row.title, row.updatedAt, row.status]).toEqual(["Named by a model", 1_000_005, "running"]);
  handle.cancel("enough");
  expect((await handle.result).status).toBe("cancelled");
  expect((await store.thread("t"))?.title).toBe("Named by a model");
});

test("tenant and owner of a run are saved with the run and with the thread that it creates, and a resume keeps them [SE4]", async () => {
  const store = memoryStore();
  const first = await start(store, "ask", { tenant: "acme", owner: "ada" }).result;
  expect((await listThreads(store, { tenant: "acme", owner: "ada" })).map(({ id }) => id)).toEqual(["t"]);
  expect((await listInterrupts(store, { tenant: "acme" })).map(({ thread }) => thread)).toEqual(["t"]);
  expect(await listInterrupts(store, { tenant: "other" })).toEqual([]);
  await resume(wordy, { store, thread: "t", answers: { ok: true } }).result;
  expect(await getRun(store, first.run)).toMatchObject({ status: "done", tenant: "acme", owner: "ada" });
  const second = await start(store, "again", { owner: "bob" }).result;
  expect(await getRun(store, second.run)).toMatchObject({ tenant: "acme", owner: "bob" });
  expect((await store.thread("t"))?.owner).toBe("ada");
});

test("a run of another tenant than its thread is refused at every way in, and the error does not name the tenant of the thread [SE4]", async () => {
  const store = memoryStore();
  const world = createVirtualWorld();
  const held = start(store, "slow", { tenant: "secret-tenant", key: "k", world });
  await world.waitUntilIdle();
  const attempts = {
    "a start": start(store, "x", { tenant: "other" }),
    "a queued start": start(store, "x", { tenant: "other", onBusy: "enqueue" }),
    "a start in place of the run": start(store, "x", { tenant: "other", onBusy: "cancel" }),
    "a start with the key of the run": start(store, "x", { tenant: "other", key: "k" }),
    "a start with a key of its own": start(store, "x", { tenant: "other", key: "mine", onBusy: "enqueue" }),
  };
  for (const [name, handle] of Object.entries(attempts)) {
    expect([name, handle.id === held.id]).toEqual([name, false]);
    const failure = await getFailure(handle.result);
    expect([name, failure.code === "invalid_option" || failure.code === "thread_busy"]).toEqual([name, true]);
    expect(failure.message).not.toContain("secret-tenant");
  }
  expect(start(store, "x", { tenant: "secret-tenant", key: "k" }).id).toBe(held.id);
  held.cancel();
  await held.result;
  const refused = await getFailure(start(store, "x", { tenant: "other" }).result, "invalid_option");
  expect(refused.message).toMatch(/run: `tenant` must be the tenant of thread "t", got "other"/);
  expect((await listRuns(store)).map(({ id }) => id)).toEqual([held.id]);
});

test("a run with a tenant is refused on a thread without a tenant [SE4]", async () => {
  const store = memoryStore();
  await start(store, "free").result;
  await getFailure(start(store, "x", { tenant: "acme" }).result, "invalid_option");
  await getFailure(() => start(store, "x", { tenant: "" }), "invalid_option");
  await getFailure(() => start(store, "x", { owner: 7 }), "invalid_option");
});

test("a run is found by its id, and in a copy of its thread after the deletion of the original [SE3]", async () => {
  const store = memoryStore();
  const { run: id } = await start(store, "hello").result;
  await copyThread(store, "t", "copy");
  expect((await getRun(store, id))?.thread).toBe("t");
  await deleteThread(store, "t");
  expect((await getRun(store, id))?.thread).toBe("copy");
  expect(await getRun(store, "run_unknown")).toBeUndefined();
});

test("a cursor is a text without special characters, and a cursor of another list or a changed one is refused [SE10]", async () => {
  const store = memoryStore();
  for (const thread of ["a", "b", "c"]) await run(wordy, { store, thread, input: { word: "ask" } }).result;
  const [threads, runs, interrupts] = [await listThreads(store), await listRuns(store), await listInterrupts(store)];
  const [thread, inRuns, interrupt] = [threads[0]?.cursor, runs[0]?.cursor, interrupts[0]?.cursor];
  for (const cursor of [thread, inRuns, interrupt]) expect(cursor).toMatch(/^[\w-]+$/);
  expect((await listInterrupts(store, { before: interrupt })).length).toBe(2);
  expect((await listRuns(store, { before: inRuns })).length).toBe(2);
  for (const before of [inRuns, interrupt, `${thread}=`, "", "[1]"])
    await getFailure(listThreads(store, { before }), "invalid_option");
  for (const before of [thread, interrupt]) await getFailure(listRuns(store, { before }), "invalid_option");
  for (const before of [thread, inRuns]) await getFailure(listInterrupts(store, { before }), "invalid_option");
});
