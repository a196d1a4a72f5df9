/** Events for a durable machine whose promises are running, and the order of results, doubts and events. */
import { describe, expect, test } from "vitest";
import { assign, fromPromise, setup } from "xstate";
import {
  durableMachine,
  engine,
  getState,
  listInterrupts,
  type MemoryStore,
  memoryStore,
  type RunEvent,
  recover,
  resume,
  run,
  type Store,
} from "../../../src/index.ts";
import { streamEvents } from "../../../src/inspect.ts";
import { collectEvents, createDeferred, getFailure, getOnlyEvent, ignoreResult } from "../../support/failure.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

interface Calls {
  /** Started charges. */
  readonly started: string[];
  /** Messages of fired abort signals. */
  readonly aborted: string[];
}

/** Shop that charges a card; CANCEL leaves every state, and a refund follows a charge. */
function createShop(charge: () => Promise<string>, calls: Calls = { started: [], aborted: [] }) {
  const machine = setup({
    types: {
      context: {} as { receipt: string; why: string },
      events: {} as { type: "CANCEL"; why?: string } | { type: "RUSH" } | { type: "BROKEN" },
    },
    actors: {
      charge: fromPromise<string>(({ self, signal }) => {
        calls.started.push(self.sessionId);
        signal.addEventListener("abort", () => calls.aborted.push((signal.reason as Error).message));
        return charge();
      }),
    },
  }).createMachine({
    id: "shop",
    context: { receipt: "", why: "" },
    initial: "charging",
    states: {
      charging: {
        invoke: {
          src: "charge",
          onDone: { target: "paid", actions: assign({ receipt: ({ event }) => event.output }) },
        },
        on: {
          CANCEL: { target: "cancelled", actions: assign({ why: ({ event }) => event.why ?? "" }) },
          RUSH: {},
          BROKEN: {
            guard: () => {
              throw new Error("a broken guard");
            },
            target: "cancelled",
          },
        },
      },
      paid: { on: { CANCEL: { target: "refunded", actions: assign({ why: ({ event }) => event.why ?? "" }) } } },
      cancelled: { type: "final" },
      refunded: { type: "final" },
    },
  });
  return durableMachine(machine, { version: 1 });
}

/** Two regions: a promise in one, a question in the other. */
function createDesk(work: () => Promise<string>) {
  const machine = setup({ actors: { work: fromPromise(work) } }).createMachine({
    id: "desk",
    type: "parallel",
    states: {
      job: { initial: "on", states: { on: { invoke: { src: "work", onDone: "off" } }, off: { type: "final" } } },
      review: { initial: "open", states: { open: { on: { APPROVE: "approved" } }, approved: { type: "final" } } },
    },
  });
  return durableMachine(machine, { version: 1, effects: { work: "idempotent" } });
}

const never = (): Promise<never> => new Promise(() => undefined);

/** Start of the promise in doubt. */
async function findAbout(store: Store): Promise<string | undefined> {
  return (await store.openInterrupts({ thread: "t", key: "in_doubt" }))[0]?.about;
}

async function listStoredEvents(store: Store): Promise<readonly RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of streamEvents({ store, thread: "t" })) events.push(event);
  return events;
}

describe("events at work", () => {
  for (const sender of ["this process", "another process"] as const)
    test(`an event from ${sender} leaves the state of a running promise, aborts its signal and is saved [FX2]`, async () => {
      const world = createVirtualWorld();
      const store = memoryStore();
      const from = sender === "this process" ? store : store.peer();
      const calls = { started: [], aborted: [] };
      const graph = createShop(never, calls);
      const handle = run(graph, { store, thread: "t", world });
      const events = collectEvents(handle);
      await world.waitUntilIdle();
      const answers = { CANCEL: { why: "too slow" } };
      const sent = await resume(graph, { store: from, thread: "t", world, answers, by: "ann" }).result;
      expect(sent).toMatchObject({
        status: "delivered",
        run: handle.id,
        delivered: [{ key: "CANCEL" }],
        state: { value: "charging" },
      });
      // A process polls the inbox once per second.
      await world.advance(1_000);
      expect(await handle.result).toMatchObject({
        status: "done",
        state: { value: "cancelled", context: { why: "too slow" } },
      });
      expect(calls.started).toHaveLength(1);
      expect(calls.aborted).toEqual(['the machine left the state that started "0.shop.charging"']);
      const [received] = getOnlyEvent(events, "event.received");
      expect(received).toMatchObject({ key: "CANCEL", by: "ann", inboxMessageId: sent.delivered?.[0]?.id });
      expect(await listStoredEvents(store)).toContainEqual(received);
      expect(await store.inbox("t", "main")).toEqual([]);
      expect(world.timers).toBe(0);
    });

  test("an engine that runs a machine delivers the event of its own resume [FX2]", async () => {
    const store = memoryStore();
    const graph = createShop(never);
    const host = engine({ store, graphs: [graph], world: createVirtualWorld() });
    await host.start();
    const handle = host.run(graph, { thread: "t" });
    await createVirtualWorld().waitUntilIdle();
    expect((await host.resume(graph, { thread: "t", answers: { CANCEL: {} } }).result).status).toBe("delivered");
    expect((await handle.result).state.value).toBe("cancelled");
    await host.stop();
  });

  test("the question of another region is listed while a promise runs, and is answered by its id [FX2]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const job = createDeferred<string>();
    const graph = createDesk(() => job.promise);
    const handle = run(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    const [open] = await listInterrupts(store);
    expect(open).toMatchObject({ key: "APPROVE", thread: "t", run: handle.id });
    expect((await getState(graph, { store, thread: "t" })).interrupts).toMatchObject([{ key: "APPROVE" }]);
    await resume(graph, { store, thread: "t", world, answers: { [open?.id ?? ""]: {} } }).result;
    await world.waitUntilIdle();
    expect((await getState(graph, { store, thread: "t" })).state.value).toEqual({ job: "on", review: "approved" });
    expect(await listInterrupts(store)).toEqual([]);
    job.resolve("ready");
    expect((await handle.result).status).toBe("done");
  });

  test("a doubt of one region is answered while the promise of another region runs [FX2]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const jobs = { once: createDeferred<string>(), pure: createDeferred<string>() };
    const region = (src: "once" | "pure") => ({
      initial: "on",
      states: { on: { invoke: { src, id: src, onDone: "off" } }, off: { type: "final" as const } },
    });
    const machine = setup({
      actors: { once: fromPromise(() => jobs.once.promise), pure: fromPromise(() => jobs.pure.promise) },
    }).createMachine({ id: "pair", type: "parallel", states: { once: region("once"), pure: region("pure") } });
    const graph = durableMachine(machine, { version: 1, effects: { pure: "pure" } });
    ignoreResult(run(graph, { store, thread: "t", world }).result);
    await world.waitUntilIdle();
    const next = store.peer();
    store.crash();
    const handle = resume(graph, { store: next, thread: "t", world });
    await world.waitUntilIdle();
    expect(await listInterrupts(next)).toMatchObject([{ key: "in_doubt", node: "once" }]);
    const answers = { in_doubt: { happened: true, output: "by phone" } };
    const sent = await resume(graph, { store: next.peer(), thread: "t", world, answers, by: "ann" }).result;
    expect(sent).toMatchObject({ status: "delivered", delivered: [{ key: "in_doubt" }] });
    await world.advance(1_000);
    expect((await getState(graph, { store: next, thread: "t" })).state.value).toEqual({ once: "off", pure: "on" });
    jobs.pure.resolve("ready");
    expect((await handle.result).status).toBe("done");
  });

  test("an event that the saved state does not accept is refused, and nothing is queued [FX2]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const graph = createShop(never);
    ignoreResult(run(graph, { store, thread: "t", world }).result);
    await world.waitUntilIdle();
    const send = (answers: object) => resume(graph, { store, thread: "t", world, answers: answers as never }).result;
    const refusal = await getFailure(send({ SHIP: {} }), "event_refused");
    expect(refusal.details).toMatchObject({ accepts: ["CANCEL", "RUSH", "BROKEN"] });
    await getFailure(send({ CANCEL: {}, RUSH: {} }), "ambiguous_answer");
    await getFailure(send({ CANCEL: 7 }), "invalid_answer");
    await getFailure(resume(graph, { store, thread: "t", world }).result, "thread_busy");
    expect(await store.inbox("t", "main")).toEqual([]);
  });

  test("a queued event that is no longer accepted at its turn is refused with a saved event [FX2]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const bank = createDeferred<string>();
    const graph = createShop(() => bank.promise);
    const handle = run(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    await resume(graph, { store: store.peer(), thread: "t", world, answers: { RUSH: {} } }).result;
    bank.resolve("paid");
    expect((await handle.result).state).toMatchObject({ value: "paid" });
    await world.waitUntilIdle();
    const [refused] = (await listStoredEvents(store)).filter(({ type }) => type === "event.refused");
    expect(refused).toMatchObject({ key: "RUSH", error: { code: "event_refused" } });
    expect(world.lines.map(({ message }) => message)).toContain("a queued event of a durable machine was refused");
    expect(await store.inbox("t", "main")).toEqual([]);
  });

  test("an event that makes a guard throw fails the run once, and a resume continues without it [FX2]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const peer = store.peer();
    const graph = createShop(never);
    const handle = run(graph, { store, thread: "t", world });
    const failed = getFailure(handle.result, "machine_failed");
    await world.waitUntilIdle();
    // A sender with this version would meet the error itself.
    const text = JSON.stringify({ run: handle.id, content: { event: { type: "BROKEN" } } });
    await peer.post({ thread: "t", id: "inbox_1", kind: "event", messages: text, at: world.clock.now() });
    await world.advance(1_000);
    expect((await failed).message).toContain("a guard");
    expect((await listStoredEvents(store)).filter(({ type }) => type === "event.refused")).toHaveLength(1);
    const asked = await resume(graph, { store, thread: "t", world }).result;
    expect(asked).toMatchObject({ status: "waiting", state: { value: "charging" } });
  });

  test("an event that arrives while the run comes to rest is processed [FX2]", async () => {
    const world = createVirtualWorld();
    const inner = memoryStore();
    const peer = inner.peer();
    const bank = createDeferred<string>();
    const graph = createShop(() => bank.promise);
    let late: Promise<unknown> | undefined;
    const store: Store = Object.assign(Object.create(inner) as MemoryStore, {
      commit: (...[commit, told]: Parameters<Store["commit"]>) => {
        const text = JSON.stringify({ run: commit.run?.id, content: { event: { type: "CANCEL" } } });
        if (commit.run?.status === "waiting")
          late ??= peer.post({ thread: "t", id: "inbox_1", kind: "event", messages: text, at: 1 });
        inner.commit(commit, told);
      },
    });
    const handle = run(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    bank.resolve("paid");
    expect((await handle.result).status).toBe("waiting");
    await late;
    await world.waitUntilIdle();
    expect(await getState(graph, { store: peer, thread: "t" })).toMatchObject({
      status: "done",
      state: { value: "refunded" },
    });
  });

  for (const starter of ["an engine", "recover"] as const)
    test(`an event that arrives before its owner dies at rest is processed by ${starter} [FX2]`, async () => {
      const world = createVirtualWorld();
      const store = memoryStore();
      const bank = createDeferred<string>();
      const graph = createShop(() => bank.promise);
      const handle = run(graph, { store, thread: "t", world });
      await world.waitUntilIdle();
      bank.resolve("paid");
      expect((await handle.result).status).toBe("waiting");
      await world.waitUntilIdle();
      const next = store.peer();
      store.crash();
      // The sender saw a run at work, and the owner died before it read its inbox again.
      const text = JSON.stringify({ run: handle.id, content: { event: { type: "CANCEL" } } });
      await next.post({ thread: "t", id: "inbox_1", kind: "event", messages: text, at: world.clock.now() });
      const host = engine({ store: next, graphs: [graph], world });
      if (starter === "an engine") await host.start();
      else await recover({ store: next, graphs: [graph], world });
      await world.waitUntilIdle();
      expect(await getState(graph, { store: next, thread: "t" })).toMatchObject({
        status: "done",
        state: { value: "refunded" },
      });
      await host.stop();
    });

  test("an engine leaves a machine whose event waits behind a doubt alone, and continues it with the queued answer [FX3]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    ignoreResult(run(createShop(never), { store, thread: "t", world }).result);
    await world.waitUntilIdle();
    const next = store.peer();
    store.crash();
    const graph = createShop(never);
    const asked = await resume(graph, { store: next, thread: "t", world, answers: { CANCEL: {} } }).result;
    expect(asked).toMatchObject({ status: "waiting", delivered: [{ key: "CANCEL" }] });
    const started: string[] = [];
    const host = engine({ store: next, graphs: [graph], world, onRun: ({ id }) => started.push(id) });
    await host.start();
    await world.advance(5_000);
    expect(started).toEqual([]);
    const [doubt] = await listInterrupts(next);
    const content = { interrupt: doubt?.id, key: "in_doubt", about: await findAbout(next), value: { happened: false } };
    const text = JSON.stringify({ run: asked.run, content });
    await next.post({ thread: "t", id: "inbox_answer", kind: "event", messages: text, at: world.clock.now() });
    await world.advance(1_000);
    expect(started).toEqual([asked.run]);
    expect((await getState(graph, { store: next, thread: "t" })).state.value).toBe("cancelled");
    await host.stop();
  });

  test("an event for a run that has ended does not reach the next run of the thread [FX2]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const graph = createShop(never);
    const first = run(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    await resume(graph, { store: store.peer(), thread: "t", world, answers: { CANCEL: {} } }).result;
    first.cancel("the customer left");
    expect((await first.result).status).toBe("cancelled");
    const second = run(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    expect((await getState(graph, { store, thread: "t" })).state.value).toBe("charging");
    expect(await store.inbox("t", "main")).toEqual([]);
    second.cancel();
    await second.result;
  });

  test("an event for a crashed run is kept, and the process that recovers the run processes it [FX2]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const job = createDeferred<string>();
    const graph = createDesk(() => job.promise);
    ignoreResult(run(graph, { store, thread: "t", world }).result);
    await world.waitUntilIdle();
    const next = store.peer();
    const sent = await resume(graph, { store: next, thread: "t", world, answers: { APPROVE: {} } }).result;
    expect(sent.status).toBe("delivered");
    store.crash();
    const [handle] = await recover({ store: next, graphs: [graph], world });
    await world.waitUntilIdle();
    expect((await getState(graph, { store: next, thread: "t" })).state.value).toEqual({
      job: "on",
      review: "approved",
    });
    job.resolve("ready");
    expect((await handle?.result)?.status).toBe("done");
  });
});

describe("order of results, doubts and events", () => {
  test("after a drain, a recorded once result comes before the event of the resume [FX3]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const bank = createDeferred<string>();
    const calls = { started: [], aborted: [] };
    const graph = createShop(() => bank.promise, calls);
    const handle = run(graph, { store, thread: "t", world });
    await world.waitUntilIdle();
    handle.drain("a new version");
    bank.resolve("paid 9");
    expect(await handle.result).toMatchObject({ status: "paused", state: { value: "charging" } });
    const done = await resume(graph, { store, thread: "t", world, answers: { CANCEL: {} } }).result;
    expect(done).toMatchObject({ status: "done", state: { value: "refunded", context: { receipt: "paid 9" } } });
    expect(calls.started).toHaveLength(1);
  });

  test("after a crash in mid-charge, the event waits behind the doubt and follows its answer [FX3]", async () => {
    for (const happened of [true, false]) {
      const world = createVirtualWorld();
      const store = memoryStore();
      const calls = { started: [], aborted: [] };
      ignoreResult(run(createShop(never, calls), { store, thread: "t", world }).result);
      await world.waitUntilIdle();
      const next = store.peer();
      store.crash();
      const graph = createShop(() => Promise.resolve("paid again"), calls);
      const open = { store: next, thread: "t", world };
      const asked = await resume(graph, { ...open, answers: { CANCEL: { why: "late" } } }).result;
      expect(asked).toMatchObject({
        status: "waiting",
        state: { value: "charging" },
        interrupts: [{ key: "in_doubt" }, { key: "CANCEL" }, { key: "RUSH" }, { key: "BROKEN" }],
        delivered: [{ key: "CANCEL" }],
      });
      const answers = { in_doubt: happened ? { happened, output: "paid once" } : { happened } };
      const done = await resume(graph, { ...open, answers }).result;
      expect(done).toMatchObject({
        status: "done",
        state: happened
          ? { value: "refunded", context: { receipt: "paid once", why: "late" } }
          : { value: "cancelled", context: { receipt: "", why: "late" } },
      });
      expect(calls.started).toHaveLength(1);
    }
  });

  test("a recorded result and due delays are processed in the order of their times [FX3]", async () => {
    for (const [endsAt, value] of [
      [50, "paid"],
      [150, "expired"],
    ] as const) {
      const world = createVirtualWorld();
      const machine = setup({
        actors: {
          charge: fromPromise(
            () => new Promise<string>((resolve) => void world.schedule.after(endsAt, () => resolve("paid"))),
          ),
        },
      }).createMachine({
        id: "deadline",
        initial: "charging",
        states: {
          charging: { invoke: { src: "charge", onDone: "paid" }, after: { 100: "expired" } },
          paid: { type: "final" },
          expired: { type: "final" },
        },
      });
      const graph = durableMachine(machine, { version: 1 });
      const store = memoryStore();
      const handle = run(graph, { store, thread: "t", world });
      await world.waitUntilIdle();
      handle.drain();
      await world.advance(200);
      expect(await handle.result).toMatchObject({ status: "paused", state: { value: "charging" } });
      expect((await resume(graph, { store, thread: "t", world }).result).state.value).toBe(value);
    }
  });

  test("a machine with only a delay is paused until the delay is due, and an engine continues it [FX45]", async () => {
    const world = createVirtualWorld();
    const machine = setup({}).createMachine({
      id: "nap",
      initial: "asleep",
      states: { asleep: { after: { 5000: "awake" } }, awake: { type: "final" } },
    });
    const graph = durableMachine(machine, { version: 1 });
    const store = memoryStore();
    const host = engine({ store, graphs: [graph], world, pollMs: 60_000 });
    await host.start();
    const paused = await host.run(graph, { thread: "t" }).result;
    expect(paused).toMatchObject({
      status: "paused",
      cause: { code: "timer_pending", details: { dueAt: world.clock.now() + 5_000 } },
    });
    await world.advance(4_999);
    expect((await getState(graph, { store, thread: "t" })).status).toBe("paused");
    await world.advance(1);
    expect((await getState(graph, { store, thread: "t" })).status).toBe("done");
    await host.stop();
    expect(world.timers).toBe(0);
  });
});
