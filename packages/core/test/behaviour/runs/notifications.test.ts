/** Notifications of engines: runs that failed, were parked, are in doubt or wait, told at least once. */
import { describe, expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  durableMachine,
  END,
  type EngineOptions,
  engine,
  type Graph,
  type MemoryStore,
  memoryStore,
  type Notification,
  recover,
  resume,
  run,
  START,
  StatewrightError,
  type Store,
  subgraph,
  toolNode,
} from "../../../src/index.ts";
import { deleteThread, listNotifications, retryNotification, stopNotifications } from "../../../src/inspect.ts";
import { getFailure, ignoreResult } from "../../support/failure.ts";
import { call, gate } from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const hourMs = 3_600_000;
const pollMs = 60_000;

function sleepAnHour(world: VirtualWorld | undefined): Promise<string> {
  return new Promise((resolve) => void world?.schedule.after(hourMs, () => resolve("ok")));
}

/** Graph whose input decides how the run ends. */
function createGraph({ version = 1, world }: { readonly version?: number; readonly world?: VirtualWorld } = {}) {
  return defineGraph({
    name: "orders",
    version,
    state: defineState({ how: z.string().default("fail"), log: channel.list(z.string()) }),
    interrupts: { ok: z.boolean() },
  })
    .nodes({
      work: async ({ how }, { interrupt, step }) => {
        if (how === "fail") throw new Error("no stock");
        if (how === "ask") return { log: [String(await interrupt("ok"))] };
        if (how === "sleep") await sleepAnHour(world);
        if (how === "charge")
          await step("charge", () => sleepAnHour(world), {
            effect: "once",
          });
        return { log: ["done"] };
      },
    })
    .edges({ [START]: "work", work: END });
}

const graph = createGraph();

interface Receiver {
  readonly received: Notification[];
  readonly attempts: string[];
}

function startEngine(
  store: Store,
  world: VirtualWorld,
  {
    fails = () => false,
    ...notify
  }: { readonly fails?: (attempt: number) => boolean } & Partial<
    Exclude<EngineOptions["notify"], undefined | ((...args: never[]) => unknown)>
  > = {},
): Receiver & { readonly host: ReturnType<typeof engine>; start(): Promise<void> } {
  const received: Notification[] = [];
  const attempts: string[] = [];
  const host = engine({
    store,
    graphs: [graph],
    world,
    pollMs,
    notify: {
      send: async (notification, { attempt }) => {
        attempts.push(`${attempt} at ${world.clock.now() - 1_000_000}`);
        if (fails(attempt)) throw new Error(`503 of attempt ${attempt}`);
        received.push(notification);
      },
      ...notify,
    },
  });
  const start = async (): Promise<void> => {
    await host.start();
    await world.waitUntilIdle();
  };
  return { host, received, attempts, start };
}

const describeAll = (received: readonly Notification[]): readonly string[] =>
  received.map(({ kind, thread }) => `${kind} ${thread}`).sort();

async function fail(store: Store, world: VirtualWorld, thread: string): Promise<void> {
  await getFailure(run(graph, { store, world, thread, input: { how: "fail" } }).result, "node_failed");
}

describe("notifications", () => {
  test("a failed run is notified once, with its error, tenant and metadata, and a second failure again [Y35]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const { start, received, host } = startEngine(store, world);
    await start();
    const handle = run(graph, {
      store,
      world,
      thread: "t",
      input: { how: "fail" },
      tenant: "acme",
      owner: "ada",
      metadata: { order: 7 },
    });
    await getFailure(handle.result, "node_failed");
    await world.advance(pollMs);
    await world.advance(hourMs);
    expect(received).toEqual([
      {
        ...{ id: expect.stringMatching(/^note_[0-9a-f]{32}$/), kind: "run.failed", at: 1_000_000 },
        ...{ thread: "t", branch: "main", run: handle.id, graph: "orders" },
        ...{ tenant: "acme", owner: "ada", metadata: { order: 7 } },
        error: { name: "StatewrightError", message: expect.stringContaining("no stock"), code: "node_failed" },
      },
    ]);
    await getFailure(resume(graph, { store, world, thread: "t" }).result, "node_failed");
    await world.advance(pollMs);
    expect(new Set(received.map(({ id }) => id)).size).toBe(2);
    await host.stop();
    expect(world.timers).toBe(0);
  });

  test("a store without an engine with notify writes no notification, and one written later is delivered by any process [Y35, SE8]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    await fail(store, world, "before");
    expect(await store.outbox.list()).toEqual([]);
    const first = startEngine(store.peer(), world);
    await first.start();
    await first.host.stop();
    await fail(store, world, "between");
    expect(describeAll(await listNotifications(store))).toEqual(["run.failed between"]);
    const plain = engine({ store, graphs: [graph], world });
    await plain.start();
    await world.advance(hourMs);
    await plain.stop();
    const second = startEngine(store.peer(), world);
    await second.start();
    expect([first.received, describeAll(second.received)]).toEqual([[], ["run.failed between"]]);
    await second.host.stop();
  });

  test("a run that is parked by a recovery or for its graph version is notified [Y35]", async () => {
    const world = createVirtualWorld();
    const first = memoryStore();
    await first.outbox.subscribe({ consumer: "notify", topics: ["run.parked"] });
    const poison = createGraph({ world });
    ignoreResult(run(poison, { store: first, world, thread: "poison", input: { how: "sleep" } }).result);
    await run(graph, { store: first, world, thread: "old", input: { how: "ask" } }).result;
    await world.waitUntilIdle();
    first.crash();
    const store = first.peer();
    let owner = store;
    for (let death = 0; death < 2; death++) {
      for (const { result } of await recover({ store: owner, graphs: [poison], world, parkAfter: 1 }))
        ignoreResult(result);
      await world.waitUntilIdle();
      if (death === 0) owner.crash();
      owner = owner.peer();
    }
    const renamed = defineGraph({ name: "orders", version: 2, state: defineState({}) })
      .nodes({ other: () => ({}) })
      .edges({ [START]: "other", other: END });
    const refused = resume(renamed, { store: owner, world, thread: "old" });
    await getFailure(refused.result, "needs_migration");
    const { start, received, host } = startEngine(owner, world);
    await start();
    expect(received.map((each) => [each.kind, each.thread, "error" in each && each.error.code])).toEqual([
      ["run.parked", "poison", "parked"],
      ["run.parked", "old", "needs_migration"],
    ]);
    await host.stop();
  });

  test("an effect in doubt is notified once with its interrupt, also after further resumes [Y35]", async () => {
    const world = createVirtualWorld();
    const first = memoryStore();
    await first.outbox.subscribe({ consumer: "notify", topics: ["run.in_doubt"] });
    const charging = createGraph({ world });
    ignoreResult(run(charging, { store: first, world, thread: "t", input: { how: "charge" } }).result);
    await world.waitUntilIdle();
    first.crash();
    const store = first.peer();
    for (let nth = 0; nth < 3; nth++) await resume(charging, { store, world, thread: "t" }).result;
    const { start, received, host } = startEngine(store, world);
    await start();
    await world.advance(hourMs);
    expect(received).toMatchObject([{ kind: "run.in_doubt", interrupt: { key: "in_doubt", node: "work" } }]);
    await host.stop();
  });

  const doubtful: readonly (readonly [string, (world: VirtualWorld) => Graph])[] = [
    [
      "a step of a subgraph",
      (world) =>
        defineGraph({ name: "outer", state: defineState({ how: z.string().default("charge") }) })
          .nodes({ inner: subgraph(createGraph({ world }), { input: () => ({ how: "charge" }), output: () => ({}) }) })
          .edges({ [START]: "inner", inner: END }),
    ],
    [
      "a call of a once tool",
      (world) => {
        const charge = defineTool({
          name: "charge",
          description: "Charge the card.",
          input: z.object({}),
          effect: "once",
          run: () => sleepAnHour(world),
        });
        return defineGraph({ name: "desk", state: defineState({ messages: channel.messages() }) })
          .nodes({
            model: () => ({ messages: [{ role: "assistant", id: "a1", content: [call("charge")], finish: "calls" }] }),
            tools: toolNode({ tools: [charge] }),
          })
          .edges({ [START]: "model", model: "tools", tools: END });
      },
    ],
    [
      "an actor of a durable machine",
      (world) =>
        durableMachine(
          setup({ actors: { charge: fromPromise(() => sleepAnHour(world)) } }).createMachine({
            id: "payment",
            initial: "charging",
            states: { charging: { invoke: { src: "charge", onDone: "paid" } }, paid: { type: "final" } },
          }),
          { version: 1, effects: { charge: "once" } },
        ),
    ],
  ];

  for (const [effect, create] of doubtful)
    test(`${effect} in doubt is notified once [Y35]`, async () => {
      const world = createVirtualWorld();
      const first = memoryStore();
      await first.outbox.subscribe({ consumer: "notify", topics: ["run.in_doubt"] });
      const program = create(world);
      ignoreResult(run(program, { store: first, world, thread: "t" }).result);
      await world.waitUntilIdle();
      first.crash();
      const store = first.peer();
      for (let nth = 0; nth < 2; nth++) await resume(program, { store, world, thread: "t" }).result;
      expect(await listNotifications(store)).toMatchObject([
        { kind: "run.in_doubt", graph: program.name, branch: "main" },
      ]);
    });

  test("an interrupt that is open for longer than the limit is notified once by two engines, and an answered one never [Y35]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const options = { waitingLongerThanMs: hourMs };
    const engines = [startEngine(store, world, options), startEngine(store.peer(), world, options)] as const;
    for (const { start } of engines) await start();
    await run(graph, { store, world, thread: "answered", input: { how: "ask" } }).result;
    await run(graph, { store, world, thread: "open", input: { how: "ask" } }).result;
    await world.advance(hourMs - pollMs);
    expect(engines.flatMap(({ received }) => received)).toEqual([]);
    await resume(graph, { store, world, thread: "answered", answers: { ok: true } }).result;
    await world.advance(pollMs);
    await world.advance(24 * hourMs);
    expect(engines.flatMap(({ received }) => received)).toMatchObject([
      { kind: "run.waiting", thread: "open", interrupt: { key: "ok", raisedAt: 1_000_000 } },
    ]);
    for (const { host } of engines) await host.stop();
    expect(world.timers).toBe(0);
  });

  test("a damaged thread with an interrupt that is open for too long does not keep the notifications of others back [Y35, F6]", async () => {
    const world = createVirtualWorld();
    const inner = memoryStore();
    const store: Store = {
      ...inner,
      runs: async (filter) => {
        if (filter?.thread === "bad") throw new StatewrightError("store_corrupt", { what: "a row", next: "Stop" });
        return await inner.runs(filter);
      },
    };
    const { start, host, received } = startEngine(store, world, { waitingLongerThanMs: hourMs });
    await start();
    for (const thread of ["bad", "open"])
      await run(graph, { store: inner, world, thread, input: { how: "ask" } }).result;
    await world.advance(hourMs);
    expect(describeAll(received)).toEqual(["run.waiting open"]);
    await host.stop();
  });

  test("each of twenty notifications is delivered by one of two engines [Y35, SE8]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const engines = [startEngine(store, world), startEngine(store.peer(), world)] as const;
    await store.outbox.subscribe({ consumer: "notify", topics: ["run.failed"] });
    for (let nth = 0; nth < 20; nth++) await fail(store, world, `t${nth}`);
    await Promise.all(engines.map(({ start }) => start()));
    await world.advance(5_000);
    const ids = engines.flatMap(({ received }) => received.map(({ id }) => id));
    expect([ids.length, new Set(ids).size]).toEqual([20, 20]);
    for (const { host } of engines) await host.stop();
  });

  test("a delivery that fails is repeated with growing delays until it is given up, and its attempts are listed [Y35]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    let isBroken = true;
    const { start, received, attempts, host } = startEngine(store, world, {
      fails: () => isBroken,
      attempts: 4,
      initialMs: 100_000,
    });
    await start();
    await fail(store, world, "t");
    await world.advance(pollMs);
    const [first] = await listNotifications(store, { state: "pending" });
    expect(first).toMatchObject({ attempts: 1, lastError: "503 of attempt 1" });
    expect(first?.nextAttemptAt).toBeGreaterThanOrEqual(1_000_000 + pollMs + 80_000);
    await world.advance(hourMs);
    expect(attempts.map((each) => each.split(" ")[0])).toEqual(["1", "2", "3", "4"]);
    const times = attempts.map((each) => Number(each.split(" ")[2]));
    const delays = times.slice(1).map((time, nth) => time - (times[nth] ?? 0));
    for (const [nth, delay] of delays.entries()) {
      expect(delay).toBeGreaterThanOrEqual(80_000 * 2 ** nth);
      expect(delay).toBeLessThanOrEqual(120_000 * 2 ** nth + pollMs);
    }
    const [given] = await listNotifications(store, { state: "given_up", kind: "run.failed", thread: "t" });
    expect(given).toMatchObject({ attempts: 4, lastError: "503 of attempt 4" });
    isBroken = false;
    expect(await retryNotification(store, given ?? { position: 0 }, { world })).toBe(true);
    await world.advance(pollMs);
    expect(received.map(({ id }) => id)).toEqual([given?.id]);
    expect(await listNotifications(store)).toMatchObject([{ state: "delivered", attempts: 1 }]);
    await host.stop();
  });

  test("a delivery that takes longer than its timeout is aborted and counts as failed [Y35]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const signals: AbortSignal[] = [];
    const { start, host } = startEngine(store, world, {
      timeoutMs: 5_000,
      send: (_notification, { signal }) => {
        signals.push(signal);
        return new Promise(() => undefined);
      },
    });
    await start();
    await fail(store, world, "t");
    await world.advance(pollMs);
    await world.advance(5_000);
    expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
    expect(await listNotifications(store)).toMatchObject([{ attempts: 1, lastError: "no answer within 5000 ms" }]);
    await host.stop({ now: true });
  });

  test("an engine that stops waits for its deliveries, and one that stops at once returns them without an attempt [Y35]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const { start, host } = startEngine(store, world, {
      send: (_notification, { signal }) =>
        new Promise((resolve) => {
          world.schedule.after(10_000, () => resolve(signal.aborted));
        }),
    });
    await start();
    await fail(store, world, "t");
    await world.advance(pollMs);
    let isStopped = false;
    const stopped = host.stop().then(() => {
      isStopped = true;
    });
    await world.advance(5_000);
    expect(isStopped).toBe(false);
    await host.stop({ now: true });
    await stopped;
    expect(await listNotifications(store)).toMatchObject([{ state: "pending", attempts: 0 }]);
    const other = startEngine(store.peer(), world);
    await other.start();
    expect(describeAll(other.received)).toEqual(["run.failed t"]);
    await other.host.stop();
  });

  test("an engine that stops while it claims a notification returns it without a delivery [Y35]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const claimed = gate();
    const slow: Store = {
      ...store,
      outbox: {
        ...store.outbox,
        claim: async (request) => {
          const rows = await store.outbox.claim(request);
          if (rows.length > 0) await claimed.passed;
          return rows;
        },
      },
    };
    const { start, host, attempts } = startEngine(slow, world);
    await start();
    await fail(store, world, "t");
    await world.advance(pollMs);
    const stopped = host.stop({ now: true });
    claimed.open();
    await stopped;
    expect(attempts).toEqual([]);
    const other = startEngine(store.peer(), world);
    await other.start();
    expect(describeAll(other.received)).toEqual(["run.failed t"]);
    await other.host.stop();
  });

  test("a notification whose process died during the delivery is delivered again under the same id [Y35, SE8]", async () => {
    const world = createVirtualWorld();
    const first: MemoryStore = memoryStore();
    const ids: string[] = [];
    const dying = engine({
      store: first,
      graphs: [graph],
      world,
      pollMs,
      notify: ({ id }) => {
        ids.push(id);
        first.crash();
      },
    });
    await dying.start();
    await fail(first.peer(), world, "t");
    await world.advance(pollMs);
    const second = startEngine(first.peer(), world);
    await second.start();
    expect(second.received.map(({ id }) => id)).toEqual(ids);
    await second.host.stop();
    await dying.stop({ now: true });
  });

  test("a deleted thread takes its notifications along, and delivered ones are removed after their retention [Y35]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const { start, host } = startEngine(store, world, {
      keepMs: 24 * hourMs,
      fails: () => true,
      attempts: 1,
    });
    await start();
    for (const thread of ["a", "b"]) await fail(store, world, thread);
    await world.advance(pollMs);
    await deleteThread(store, "a");
    expect(describeAll(await listNotifications(store))).toEqual(["run.failed b"]);
    await world.advance(23 * hourMs);
    expect(await listNotifications(store)).toHaveLength(1);
    await world.advance(2 * hourMs);
    expect(await listNotifications(store)).toEqual([]);
    await host.stop();
  });

  test("stopNotifications removes the pending notifications, and later runs write none [Y35]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const { start, host } = startEngine(store, world);
    await start();
    await host.stop();
    await fail(store, world, "a");
    await stopNotifications(store);
    await fail(store, world, "b");
    expect(await store.outbox.list()).toEqual([]);
  });

  test("notifications are listed page by page, and a foreign cursor is refused [Y35]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    await store.outbox.subscribe({ consumer: "notify", topics: ["run.failed"] });
    for (const thread of ["a", "b", "c"]) await fail(store, world, thread);
    const [newest] = await listNotifications(store, { limit: 1 });
    const rest = await listNotifications(store, { before: newest?.cursor });
    expect([newest?.thread, ...rest.map(({ thread }) => thread)]).toEqual(["c", "b", "a"]);
    await expect(listNotifications(store, { before: "bad" })).rejects.toMatchObject({ code: "invalid_option" });
  });

  test("an invalid notify option is refused with the name of the option [Y35]", () => {
    const store = memoryStore();
    const create = (notify: unknown) => () => engine({ store, graphs: [graph], notify } as EngineOptions);
    expect(create(3)).toThrow("engine: `notify` must be a function or its options, got 3");
    expect(create({})).toThrow("`send`");
    expect(create({ send: () => undefined, waitingLongerThanMs: 0 })).toThrow("`waitingLongerThanMs`");
    expect(create({ send: () => undefined, wait: 1 })).toThrow('"wait"');
  });
});
