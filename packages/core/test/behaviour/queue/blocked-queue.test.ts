/** Queued inputs that cannot start: no input waits for ever, and none is dropped silently. */
import { expect, test } from "vitest";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  END,
  getState,
  memoryStore,
  recover,
  resume,
  run,
  START,
  type Store,
  updateState,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { createCodec } from "../../../src/store.ts";
import { createCrashingStore } from "../../support/crashing-store.ts";
import { getFailure, ignoreResult } from "../../support/failure.ts";
import { gate } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

/** Graph that records each word; "slow" waits for the gate, and "asks" first raises an interrupt. */
function notes(version: number, word: z.ZodType<string> = z.string(), name = "notes", world = createVirtualWorld()) {
  const slow = gate();
  const state = defineState({ word, log: channel.list(z.string()) });
  const graph = defineGraph({ name, version, state, interrupts: { ok: z.boolean() } })
    .nodes({
      note: async (state, { interrupt }) => {
        if (state.word === "asks") await interrupt("ok");
        if (["slow", "asks"].includes(state.word)) await slow.passed;
        return { log: [`${state.word} ${version}`] };
      },
      end: () => ({}),
    })
    .edges({ [START]: "note", note: "end", end: END });
  const start = (store: Store, input: string, more: { readonly key?: string } = {}) =>
    run(graph, { store, world, thread: "t", input: { word: input }, onBusy: "enqueue", ...more });
  const log = async (store: Store) => (await getState(graph, { store, thread: "t" })).state.log;
  return { graph, world, start, log, open: () => slow.open(undefined) };
}

const listStatuses = async (store: Store) =>
  (await listRuns(store))
    .toReversed()
    .map(({ status, reason }) => (reason === undefined ? status : `${status}: ${reason}`));

test("an input for another graph is refused at once, and a queued input for another graph does not block later inputs", async () => {
  const store = memoryStore();
  const { world, start, log, open } = notes(1);
  const strange = notes(1, z.string(), "strange");
  const first = start(store, "slow");
  await world.waitUntilIdle();
  for (const onBusy of ["enqueue", "cancel", "rollback"] as const) {
    const late = run(strange.graph, { store, world, thread: "t", input: { word: "x" }, onBusy });
    const refusal = await getFailure(late.result, "graph_changed");
    expect(refusal.message, onBusy).toContain('written by graph "notes"');
  }
  expect(await listStatuses(store)).toEqual(["running"]);

  const row = {
    id: "x",
    graph: "strange",
    version: 1,
    status: "queued",
    attempt: 1,
    startedAt: 1,
    queuedAt: 1,
  } as const;
  await store.enqueue({ thread: "t", run: { ...row, input: '{"word":"x"}' } });
  const next = start(store, "b");
  await world.waitUntilIdle();
  open();
  expect((await first.result).status).toBe("done");
  expect((await next.result).status).toBe("done");
  expect(await log(store)).toEqual(["slow 1", "b 1"]);
  expect(await listStatuses(store)).toEqual([
    "done",
    'cancelled: the thread belongs to the graph "notes", and the input was for "strange"',
    "done",
  ]);
  expect(world.lines.map(({ message }) => message)).toContain(
    "an input was removed from the queue: it is for another graph",
  );
});

test("a queued input that this process cannot decode is tried once and stays first for a process that can", async () => {
  const store = memoryStore();
  const { world, graph, start, log, open } = notes(1);
  const first = start(store, "slow");
  await world.waitUntilIdle();
  // A class that only the enqueuing process has registered.
  const row = { id: "x", graph: "notes", version: 1, status: "queued", attempt: 1, startedAt: 1, queuedAt: 1 } as const;
  await store.enqueue({ thread: "t", run: { ...row, input: '{"word":{"$":"word","v":"b"}}' } });
  const behind = start(store, "c");
  let claims = 0;
  const { claim } = store;
  store.claim = (request) => {
    claims += 1;
    // Without this line a retrying process would never finish.
    return claims > 50 ? new Promise<never>(() => undefined) : claim(request);
  };
  open();
  expect((await first.result).status).toBe("done");
  expect((await behind.result).status).toBe("queued");
  await world.waitUntilIdle();
  expect(claims).toBe(1);
  expect(await listStatuses(store)).toEqual(["done", "queued", "queued"]);

  const codec = createCodec([
    { tag: "word", matches: (_value): _value is never => false, encode: String, decode: String },
  ]);
  const [handle] = await recover({ store, graphs: [graph], world, codec });
  expect((await handle?.result)?.status).toBe("done");
  await world.waitUntilIdle();
  expect(await log(store)).toEqual(["slow 1", "b 1", "c 1"]);
});

test("a queued input for a later graph version waits for a process with that version, and inputs behind it return queued", async () => {
  const store = memoryStore();
  const old = notes(1, z.string().max(4));
  const first = old.start(store, "slow");
  await old.world.waitUntilIdle();
  const later = notes(2, z.string(), "notes", old.world);
  const newer = await later.start(store.peer(), "for the newer").result;
  const behind = old.start(store, "old");
  await old.world.waitUntilIdle();
  old.open();
  await first.result;
  expect([newer.status, (await behind.result).status]).toEqual(["queued", "queued"]);
  expect(await listStatuses(store)).toEqual(["done", "queued", "queued"]);
  expect((await recover({ store, graphs: [old.graph], world: old.world })).length).toBe(0);
  expect(await listStatuses(store)).toEqual(["done", "queued", "queued"]);
  expect((await later.start(store.peer(), "last").result).status).toBe("done");
  expect(await later.log(store)).toEqual(["slow 1", "for the newer 2", "old 2", "last 2"]);
});

test("a queued input that its graph now refuses is cancelled with the reason, and the next input starts", async () => {
  const store = memoryStore();
  const old = notes(1);
  ignoreResult(old.start(store, "slow").result);
  await old.world.waitUntilIdle();
  const peer = store.peer();
  await old.start(peer, "much too long", { key: "long" }).result;
  await old.start(peer, "fits").result;
  store.crash();
  const now = notes(2, z.string().max(4), "notes", old.world);
  now.open();
  await Promise.all(
    (await recover({ store: peer, graphs: [now.graph], world: now.world })).map(({ result }) => result),
  );
  await now.world.waitUntilIdle();
  expect(await now.log(peer)).toEqual(["slow 2", "fits 2"]);
  const [done, refused, next] = await listStatuses(peer);
  expect([done, next]).toEqual(["done", "done"]);
  expect(refused).toContain('cancelled: invalid_input: the input of graph "notes" is invalid at "word"');
  const asked = await now.start(peer, "ask", { key: "long" }).result;
  expect(asked).toMatchObject({ status: "cancelled", reason: expect.stringContaining("invalid_input") });
});

test("inputs sent to one process at the same time all get their own results, on a new and on an idle thread", async () => {
  const store = memoryStore();
  const { start, log } = notes(1);
  for (const words of [
    ["a", "b", "c"],
    ["d", "e", "f"],
  ]) {
    const ends = await Promise.all(words.map((word) => start(store, word).result));
    expect(ends.map(({ status }) => status)).toEqual(["done", "done", "done"]);
  }
  expect(await log(store)).toEqual(["a 1", "b 1", "c 1", "d 1", "e 1", "f 1"]);
});

test("a repeated start of a queued input returns cancelled when the first caller cancels the input", async () => {
  const store = memoryStore();
  const { graph, world, start, open } = notes(1);
  await start(store, "asks").result;
  const first = start(store, "b", { key: "k" });
  expect((await first.result).status).toBe("queued");
  const resumed = resume(graph, { store, world, thread: "t", answers: { ok: true } });
  await world.waitUntilIdle();
  const again = start(store, "b", { key: "k" });
  await world.waitUntilIdle();
  first.cancel("not needed");
  expect(await again.result).toMatchObject({ status: "cancelled", reason: "not needed" });
  open();
  expect((await resumed.result).status).toBe("done");
});

/** Creates a store whose reads and writes wait for a gate when the test sets one. */
function haltedStore() {
  const memory = memoryStore();
  const halts: { queue?: Promise<unknown>; release?: Promise<unknown>; refusal?: Promise<unknown> } = {};
  const store: { -readonly [Name in keyof Store]: Store[Name] } = {
    ...memory,
    claim: async (request) => {
      try {
        return await memory.claim(request);
      } catch (error) {
        await halts.refusal;
        throw error;
      }
    },
    runs: async (filter) => {
      if (filter?.status === "queued") await halts.queue;
      return memory.runs(filter);
    },
    commit: (write, onCommitted) => {
      if (write.release === true && halts.release !== undefined)
        void halts.release.then(() => memory.commit(write, onCommitted));
      else memory.commit(write, onCommitted);
    },
  };
  return { store, halts };
}

test("a queued input that loses its turn to a start which fails still gets its turn", async () => {
  const { store, halts } = haltedStore();
  const { graph, world, start, open } = notes(1);
  const first = start(store, "slow");
  await world.waitUntilIdle();
  const next = start(store, "b");
  await world.waitUntilIdle();
  const [queue, release, refusal] = [gate(), gate(), gate()];
  halts.queue = queue.passed;
  open();
  await first.result;
  const late = run(graph, { store, world, thread: "t", input: { word: "c" } });
  const refused = getFailure(late.result, "thread_busy");
  await world.waitUntilIdle();
  Object.assign(halts, { release: release.passed, refusal: refusal.passed });
  queue.open(undefined);
  await world.waitUntilIdle();
  release.open(undefined);
  await refused;
  await world.waitUntilIdle();
  refusal.open(undefined);
  expect((await next.result).status).toBe("done");
});

test("a queued input cancelled by another handle at its turn yields to the next input", async () => {
  const { store, halts } = haltedStore();
  const { graph, world, start, open } = notes(1);
  await start(store, "asks").result;
  const first = start(store, "b", { key: "k" });
  expect([(await first.result).status, (await start(store, "c").result).status]).toEqual(["queued", "queued"]);
  const resumed = resume(graph, { store, world, thread: "t", answers: { ok: true } });
  await world.waitUntilIdle();
  const again = start(store, "b", { key: "k" });
  await world.waitUntilIdle();
  const claim = store.claim;
  const queue = gate();
  store.claim = async (request) => {
    const claimed = await claim(request);
    halts.queue = queue.passed;
    return claimed;
  };
  open();
  await resumed.result;
  await world.waitUntilIdle();
  // Simulates a write of another process, without an event in this process.
  expect(await store.dequeue("t", first.id, { at: 1, reason: "not needed" })).toBe(true);
  queue.open(undefined);
  expect((await again.result).status).toBe("cancelled");
  await world.waitUntilIdle();
  await world.waitUntilIdle();
  expect(await listStatuses(store)).toEqual(["done", "cancelled: not needed", "done"]);
});

test("a queued input cancelled by another handle after its turn and before its first write returns cancelled", async () => {
  const store = memoryStore();
  const { graph, world, start, open } = notes(1);
  await start(store, "asks").result;
  const first = start(store, "b", { key: "k" });
  expect([(await first.result).status, (await start(store, "c").result).status]).toEqual(["queued", "queued"]);
  const resumed = resume(graph, { store, world, thread: "t", answers: { ok: true } });
  await world.waitUntilIdle();
  const again = start(store, "b", { key: "k" });
  const commit = store.commit;
  store.commit = (write, onCommitted) => {
    const isTaken = write.run?.id === first.id && write.run.status === "running";
    if (isTaken) void store.dequeue("t", first.id, { at: 1, reason: "not needed" });
    commit(write, onCommitted);
  };
  open();
  await resumed.result;
  expect(await again.result).toMatchObject({ status: "cancelled", reason: "not needed" });
  await world.waitUntilIdle();
  await world.waitUntilIdle();
  expect(await listStatuses(store)).toEqual(["done", "cancelled: not needed", "done"]);
});

test("an input that arrives during updateState starts after the update", async () => {
  const { store, halts } = haltedStore();
  const { graph, world, start, log } = notes(1);
  await start(store, "a").result;
  const release = gate();
  halts.release = release.passed;
  const updated = updateState(graph, { store, world, thread: "t", as: "end", values: { log: ["by hand"] } });
  await world.waitUntilIdle();
  const next = start(store, "b");
  await world.waitUntilIdle();
  release.open(undefined);
  await updated;
  expect((await next.result).status).toBe("done");
  expect(await log(store)).toEqual(["a 1", "by hand", "b 1"]);
});

test("a crash at any commit of a queued start leaves later callers with an answer, and recover starts every remaining input once", async () => {
  for (const when of ["before", "after"] as const) {
    for (let nth = 1; nth <= 8; nth++) {
      const where = `${when} commit ${nth}`;
      const memory = memoryStore();
      const { graph, world, start, log, open } = notes(1);
      const { store, isDead } = createCrashingStore(memory, nth, when);
      ignoreResult(start(store, "slow").result);
      await world.waitUntilIdle();
      ignoreResult(start(store, "b").result);
      await world.waitUntilIdle();
      open();
      await world.waitUntilIdle();
      await world.waitUntilIdle();
      if (!isDead()) memory.crash();
      const other = memory.peer();
      const next = await start(other, "c").result;
      expect(["done", "queued"], where).toContain(next.status);
      for (const { result } of await recover({ store: other, graphs: [graph], world })) await result;
      await world.waitUntilIdle();
      const runs = await listRuns(other);
      expect(
        runs.map(({ status }) => status).filter((status) => status !== "done"),
        where,
      ).toEqual([]);
      const words = await log(other);
      expect(words, where).toHaveLength(runs.length);
      expect(words.at(-1), where).toBe("c 1");
    }
  }
});
