/** Durable machines: promises, timers and child machines continue after a crash. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AnyStateMachine,
  assign,
  cancel,
  createMachine,
  emit,
  fromCallback,
  fromObservable,
  fromPromise,
  fromTransition,
  log,
  raise,
  sendParent,
  sendTo,
  setup,
  spawnChild,
  stopChild,
} from "xstate";
import {
  defineMigration,
  durableMachine,
  engine,
  fork,
  getHistory,
  getState,
  type MemoryStore,
  memoryStore,
  type RunHandle,
  type RunResult,
  resume,
  run,
  type Store,
} from "../../../src/index.ts";
import { toMermaid } from "../../../src/inspect.ts";
import type { Commit } from "../../../src/store.ts";
import { collectEvents, createDeferred, getFailure, getOnlyEvent, ignoreResult } from "../../support/failure.ts";
import { removeKeySalt } from "../../support/remove-key-salt.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

interface Order {
  readonly id: string;
}

/** Order machine: charges, then ships; records the key of each call. */
function createShop(calls: string[] = [], fails: { charge?: () => unknown; ship?: () => unknown } = {}) {
  const machine = setup({
    types: { input: {} as Order, context: {} as { id: string; receipt: string; problem: string } },
    actors: {
      charge: fromPromise<string, { id: string }>(async ({ input, self }) => {
        calls.push(`charge ${input.id} ${self.sessionId}`);
        await fails.charge?.();
        return `paid ${input.id}`;
      }),
      ship: fromPromise<string, { receipt: string }>(async ({ input, self }) => {
        calls.push(`ship ${input.receipt} ${self.sessionId}`);
        await fails.ship?.();
        return "on its way";
      }),
    },
  }).createMachine({
    id: "order",
    context: ({ input }) => ({ id: input.id, receipt: "", problem: "" }),
    initial: "charging",
    states: {
      charging: {
        invoke: {
          src: "charge",
          input: ({ context }) => ({ id: context.id }),
          onDone: { target: "shipping", actions: assign({ receipt: ({ event }) => event.output }) },
        },
      },
      shipping: {
        invoke: {
          src: "ship",
          input: ({ context }) => ({ receipt: context.receipt }),
          onDone: "shipped",
          onError: {
            target: "stuck",
            actions: assign({ problem: ({ event }) => (event.error as Error).message }),
          },
        },
      },
      stuck: { on: { RETRY: "shipping", GIVE_UP: { target: "lost", guard: ({ context }) => context.problem !== "" } } },
      lost: { type: "final" },
      shipped: { type: "final" },
    },
    output: ({ context }) => ({ id: context.id, receipt: context.receipt }),
  });
  return durableMachine(machine, { version: 1, effects: { charge: "once", ship: "idempotent" } });
}

const input = { id: "9" };

describe("durable machine", () => {
  test("a durable machine runs to its end without a store [E53]", async () => {
    const calls: string[] = [];
    const { status, state } = await run(createShop(calls), { thread: "t", input, world: createVirtualWorld() }).result;
    expect(status).toBe("done");
    expect(state).toEqual({
      value: "shipped",
      context: { id: "9", receipt: "paid 9", problem: "" },
      children: {},
      output: { id: "9", receipt: "paid 9" },
    });
    expect(calls.map(removeKeySalt)).toEqual([
      "charge 9 t/main/0:0/0.order.charging",
      "ship paid 9 t/main/1:0/0.order.shipping",
    ]);
  });

  test("the history of a durable machine lists its states and their changes", async () => {
    const store = memoryStore();
    await run(createShop(), { store, thread: "t", input, world: createVirtualWorld() }).result;
    const steps = [];
    for await (const { step, source, nodes, next, changes } of getHistory(createShop(), { store, thread: "t" }))
      steps.push({ step, source, nodes, next, changes });
    expect(steps).toEqual([
      {
        ...{ step: 2, source: "step", nodes: ["shipping"], next: ["__end__"] },
        changes: {
          value: { kind: "replace", value: "shipped" },
          output: { kind: "replace", value: { id: "9", receipt: "paid 9" } },
        },
      },
      {
        ...{ step: 1, source: "step", nodes: ["charging"], next: ["shipping"] },
        changes: {
          value: { kind: "replace", value: "shipping" },
          context: { kind: "patch", patches: [{ op: "add", path: ["receipt"], value: "paid 9" }] },
        },
      },
      {
        ...{ step: 0, source: "input", nodes: [], next: ["charging"] },
        changes: {
          value: { kind: "replace", value: "charging" },
          context: { kind: "replace", value: { id: "9", receipt: "", problem: "" } },
        },
      },
    ]);
    expect((await getState(createShop(), { store, thread: "t", at: 2 })).state).toMatchObject({ value: "shipping" });
  });

  test("a durable machine emits each transition, and its promises as tasks", async () => {
    const handle = run(createShop(), { thread: "t", input, world: createVirtualWorld() });
    const events = collectEvents(handle);
    await handle.result;
    expect(
      getOnlyEvent(events, "transition.taken").map(({ from, to, event, effects }) => [from, to, event, effects]),
    ).toEqual([
      [null, "charging", "xstate.init", ["0.order.charging"]],
      ["charging", "shipping", "xstate.done.actor.0.order.charging", ["0.order.shipping"]],
      ["shipping", "shipped", "xstate.done.actor.0.order.shipping", []],
    ]);
    expect(getOnlyEvent(events, "task.completed").map(({ node }) => node)).toEqual(["charge", "ship"]);
  });

  test("a durable machine is rendered in Mermaid with its states", () => {
    expect(toMermaid(createShop())).toContain('charging -->|"charge done"| shipping');
    expect(toMermaid(createShop())).toContain("shipped --> done");
  });

  test("a durable machine accepts an event of its current state as an answer, and refuses another with the accepted list [E54]", async () => {
    const calls: string[] = [];
    let broken = true;
    const graph = createShop(calls, {
      ship: () => {
        if (broken) throw new Error("no truck");
      },
    });
    const store = memoryStore();
    const world = createVirtualWorld();
    const first = await run(graph, { store, thread: "t", input, world }).result;
    expect(first).toMatchObject({ status: "waiting", state: { value: "stuck", context: { problem: "no truck" } } });
    expect(first.status === "waiting" && first.interrupts.map(({ key, node }) => `${key} in ${node}`)).toEqual([
      "RETRY in stuck",
      "GIVE_UP in stuck",
    ]);
    const refusal = await getFailure(
      resume(graph, { store, thread: "t", answers: { PAY: {} }, world }).result,
      "event_refused",
    );
    expect(refusal.message).toContain('Send one of "RETRY", "GIVE_UP"');
    expect(refusal.details).toMatchObject({ accepts: ["RETRY", "GIVE_UP"] });
    await getFailure(
      resume(graph, { store, thread: "t", answers: { RETRY: {}, GIVE_UP: {} }, world }).result,
      "ambiguous_answer",
    );
    await getFailure(resume(graph, { store, thread: "t", answers: { RETRY: 7 }, world }).result, "invalid_answer");
    await getFailure(
      resume(graph, { store, thread: "t", answers: { "xstate.done.actor.x": {} }, world }).result,
      "invalid_answer",
    );
    broken = false;
    const second = await resume(graph, { store, thread: "t", answers: { RETRY: true }, world }).result;
    expect(second).toMatchObject({ status: "done", state: { value: "shipped" } });
    expect(calls).toHaveLength(3);
    const late = await getFailure(
      resume(graph, { store, thread: "t", answers: { RETRY: true }, world }).result,
      "event_refused",
    );
    expect(late.details).toMatchObject({ accepts: [] });
  });

  test("an unhandled failure fails the run of a durable machine; a resume restarts idempotent promises and no once promise", async () => {
    const store = memoryStore();
    const world = createVirtualWorld();
    let broken = true;
    const calls: string[] = [];
    const fail = (): void => {
      if (broken) throw new Error("no bank");
    };
    const graph = createShop(calls, { charge: fail });
    const failure = await getFailure(run(graph, { store, thread: "t", input, world }).result, "node_failed");
    expect(failure.message).toContain("no bank");
    expect(failure.cause).toMatchObject({ message: "no bank" });
    broken = false;
    // The failed charge is recorded; a once promise is not retried.
    await getFailure(resume(graph, { store, thread: "t", world }).result, "node_failed");
    expect(calls).toHaveLength(1);
  });

  test("a machine in a state without exit that is not final waits, and a version with an exit continues it [FX45]", async () => {
    const store = memoryStore();
    const draw = (type: "final" | "atomic") =>
      durableMachine(createMachine({ id: "end", initial: "a", states: { a: { always: "b" }, b: { type } } }), {
        version: 1,
      });
    const world = createVirtualWorld();
    const resting = await run(draw("atomic"), { store, thread: "t", world }).result;
    expect(resting).toMatchObject({ status: "waiting", interrupts: [], state: { value: "b" } });
    await getFailure(
      resume(draw("atomic"), { store, thread: "t", world, answers: { GO: {} } }).result,
      "event_refused",
    );
    expect(await resume(draw("atomic"), { store, thread: "t", world }).result).toMatchObject({ status: "waiting" });
    expect((await resume(draw("final"), { store, thread: "t", world }).result).status).toBe("done");
  });

  test("a fork of a durable machine continues with an edited context; an edit of its state value is refused", async () => {
    const store = memoryStore();
    const calls: string[] = [];
    const graph = createShop(calls);
    await run(graph, { store, thread: "t", input, world: createVirtualWorld() }).result;
    const branch = await fork(graph, {
      store,
      thread: "t",
      at: 2,
      name: "other",
      update: { context: { receipt: "by hand" } },
    });
    const { state } = await resume(graph, { store, thread: "t", branch, world: createVirtualWorld() }).result;
    expect(state.output).toEqual({ id: "9", receipt: "by hand" });
    expect(removeKeySalt(calls.at(-1) ?? "")).toBe("ship paid 9 t/other/1:0/0.order.shipping");
    await getFailure(
      fork(graph, { store, thread: "t", at: 2, name: "no", update: { value: "lost" } as never }),
      "invalid_update",
    );
  });
});

describe("promises as effects", () => {
  test("a once promise that was active when its process died is in doubt, and a person decides its outcome [E53]", async () => {
    for (const happened of [true, false]) {
      const store = memoryStore();
      const calls: string[] = [];
      const never = createDeferred();
      const dying = run(createShop(calls, { charge: () => never.promise }), {
        store,
        thread: "t",
        input,
        world: createVirtualWorld(),
      });
      await createVirtualWorld().waitUntilIdle();
      expect(calls).toHaveLength(1);
      store.crash();
      ignoreResult(dying.result);
      const peer = store.peer();
      const graph = createShop(calls);
      const asked = await resume(graph, { store: peer, thread: "t", world: createVirtualWorld() }).result;
      expect(asked).toMatchObject({
        status: "waiting",
        interrupts: [{ key: "in_doubt", node: "charge", payload: { actor: "charge", input: { id: "9" } } }],
      });
      await getFailure(
        resume(graph, { store: peer, thread: "t", answers: { in_doubt: "yes" }, world: createVirtualWorld() }).result,
        "invalid_answer",
      );
      const answers = { in_doubt: happened ? { happened, output: "paid by phone" } : { happened } };
      const done = await resume(graph, { store: peer, thread: "t", answers, world: createVirtualWorld() }).result;
      expect(done.state.output).toEqual({ id: "9", receipt: happened ? "paid by phone" : "paid 9" });
      const charges = calls.filter((call) => call.startsWith("charge"));
      expect(charges).toHaveLength(happened ? 1 : 2);
      expect(new Set(charges).size).toBe(1);
      never.resolve();
    }
  });

  test("a once promise that died again after a restart opens a new interrupt: an answer for one start does not count for the next", async () => {
    const world = createVirtualWorld();
    let starts = 0;
    const machine = setup({
      actors: {
        charge: fromPromise(() => (++starts < 3 ? new Promise<string>(() => undefined) : Promise.resolve("third"))),
      },
    }).createMachine({
      id: "stubborn",
      initial: "paying",
      states: { paying: { invoke: { src: "charge", onDone: "paid" } }, paid: { type: "final" } },
    });
    const graph = durableMachine(machine, { version: 1 });
    let store = memoryStore();
    ignoreResult(run(graph, { store, thread: "t", world }).result);
    for (let nth = 1; nth <= 2; nth++) {
      await world.waitUntilIdle();
      const next = store.peer();
      store.crash();
      store = next;
      for (let again = 0; again < 2; again++)
        expect((await resume(graph, { store, thread: "t", world }).result).status).toBe("waiting");
      expect(starts).toBe(nth);
      ignoreResult(resume(graph, { store, thread: "t", world, answers: { in_doubt: { happened: false } } }).result);
    }
    await world.waitUntilIdle();
    expect((await resume(graph, { store, thread: "t", world }).result).status).toBe("done");
    expect(starts).toBe(3);
  });

  test("a promise without an effect class is once and is in doubt after a crash, also when other steps were committed since [E53]", async () => {
    const world = createVirtualWorld();
    const slow = createDeferred<string>();
    const calls: string[] = [];
    const machine = setup({
      actors: {
        slow: fromPromise(() => {
          calls.push("slow");
          return slow.promise;
        }),
      },
    }).createMachine({
      id: "overtaken",
      type: "parallel",
      states: {
        work: { initial: "on", states: { on: { invoke: { src: "slow", onDone: "off" } }, off: { type: "final" } } },
        tick: {
          initial: "one",
          states: {
            one: { after: { 10: "two" } },
            two: { after: { 10: "three" } },
            three: { after: { 50: "end" } },
            end: { type: "final" },
          },
        },
      },
    });
    const graph = durableMachine(machine, { version: 1 });
    const store = memoryStore();
    ignoreResult(run(graph, { store, thread: "t", world }).result);
    await world.advance(25);
    expect((await store.peer().head("t"))?.step).toBe(2);
    store.crash();
    const after = createVirtualWorld(world.clock.now());
    const second = store.peer();
    const asked = resume(graph, { store: second, thread: "t", world: after });
    await after.advance(100);
    expect(await asked.result).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt" }] });
    expect(calls).toEqual(["slow"]);
    const done = await resume(graph, {
      store: second,
      thread: "t",
      world: after,
      answers: { in_doubt: { happened: true } },
    }).result;
    expect(done).toMatchObject({ status: "done", state: { value: { work: "off", tick: "end" } } });
    expect(calls).toEqual(["slow"]);
    slow.resolve("late");
  });

  test("a promise whose state was left gets its abort signal, and its late result is dropped", async () => {
    const world = createVirtualWorld();
    const late = createDeferred<string>();
    const reasons: unknown[] = [];
    const machine = setup({
      actors: {
        slow: fromPromise(({ signal }) => {
          signal.addEventListener("abort", () => reasons.push((signal.reason as Error).message));
          return late.promise;
        }),
      },
    }).createMachine({
      id: "left",
      initial: "on",
      states: {
        on: { invoke: { src: "slow", id: "slow", onDone: "done" }, after: { 50: "next" } },
        next: { after: { 50: "over" } },
        over: { type: "final" },
        done: { type: "final" },
      },
    });
    const graph = durableMachine(machine, { version: 1 });
    const store = memoryStore();
    const handle = run(graph, { store, thread: "t", world });
    await world.advance(60);
    expect(reasons).toEqual(['the machine left the state that started "slow"']);
    late.resolve("too late");
    await world.advance(60);
    expect(await handle.result).toMatchObject({ status: "paused", state: { value: "next" } });
    expect((await resume(graph, { store, thread: "t", world }).result).state.value).toBe("over");
    expect(world.lines.map(({ message }) => message)).toEqual(['a late result of "slow" was dropped']);
    expect(world.timers).toBe(0);
  });

  test("a cancelled durable machine stops its promises and leaves no timer", async () => {
    const world = createVirtualWorld();
    const never = createDeferred();
    const machine = setup({ actors: { wait: fromPromise(() => never.promise) } }).createMachine({
      id: "cancelled",
      initial: "on",
      states: { on: { invoke: { src: "wait" }, after: { 1000: "off" } }, off: { type: "final" } },
    });
    const store = memoryStore();
    const handle = run(durableMachine(machine, { version: 1 }), { store, thread: "t", world });
    await world.waitUntilIdle();
    expect(world.timers).toBe(1);
    handle.cancel("enough");
    expect(await handle.result).toMatchObject({ status: "cancelled", reason: "enough" });
    expect(world.timers).toBe(0);
    expect((await store.runs())[0]?.status).toBe("cancelled");
  });
});

describe("parallel promises", () => {
  const pair = (calls: string[], wait: Promise<void>) => {
    const work = (name: string) =>
      fromPromise(() => {
        calls.push(name);
        return wait;
      });
    const region = (src: "one" | "two") => ({
      initial: "on",
      states: { on: { invoke: { src, id: src, onDone: "off" } }, off: { type: "final" as const } },
    });
    const machine = setup({ actors: { one: work("one"), two: work("two") } }).createMachine({
      id: "pair",
      type: "parallel",
      states: { one: region("one"), two: region("two") },
    });
    return durableMachine(machine, { version: 1, effects: { one: "idempotent", two: "idempotent" } });
  };

  test("a promise whose outcome was recorded while another checkpoint was committed is not started again", async () => {
    const calls: string[] = [];
    const both = createDeferred();
    const world = createVirtualWorld();
    const store = memoryStore();
    const dying: Store = Object.assign(Object.create(store) as MemoryStore, {
      commit: (commit: Commit, onCommitted: Parameters<Store["commit"]>[1]) =>
        store.commit(commit, (failure) => {
          if (commit.checkpoint?.row.step === 1) store.crash();
          else onCommitted(failure);
        }),
    });
    ignoreResult(run(pair(calls, both.promise), { store: dying, thread: "t", world }).result);
    await world.waitUntilIdle();
    both.resolve();
    await world.waitUntilIdle();
    const peer = store.peer();
    expect((await peer.head("t"))?.step).toBe(1);
    const done = await resume(pair(calls, both.promise), { store: peer, thread: "t", world }).result;
    expect(done).toMatchObject({ status: "done", state: { value: { one: "off", two: "off" } } });
    expect(calls).toEqual(["one", "two"]);
  });

  test("a cancel during the save of the start of a once promise prevents the start, and a resume starts the promise", async () => {
    const calls: string[] = [];
    const store = memoryStore();
    const world = createVirtualWorld();
    const handle = run(createShop(calls), {
      store: Object.assign(Object.create(store) as MemoryStore, {
        commit: (commit: Commit, onCommitted: Parameters<Store["commit"]>[1]) => {
          if (commit.effects?.some(({ state }) => state === "started") === true) handle.cancel("not now");
          store.commit(commit, onCommitted);
        },
      }),
      thread: "t",
      input,
      world,
    });
    expect((await handle.result).status).toBe("cancelled");
    expect(calls).toEqual([]);
    const done = await resume(createShop(calls), { store, thread: "t", world }).result;
    expect(done.status).toBe("done");
    expect(calls).toHaveLength(2);
  });

  test("an actor, state or child missing from a newer machine is reported by name", async () => {
    const calls: string[] = [];
    const store = memoryStore();
    const world = createVirtualWorld();
    const charge = (): Promise<never> => new Promise(() => undefined);
    ignoreResult(run(createShop(calls, { charge }), { store, thread: "t", input, world }).result);
    await world.waitUntilIdle();
    store.crash();
    const other = (states: object, actors: object = {}) =>
      durableMachine(
        createMachine({ id: "order", initial: "charging", states } as never).provide({ actors } as never),
        {
          version: 2,
        },
      );
    const gone = other({ charging: { on: { GO: "b" } }, b: {} });
    const peer = store.peer();
    const failure = await getFailure(resume(gone, { store: peer, thread: "t", world }).result, "needs_migration");
    expect(failure.message).toContain('a running actor "charge"');
    const renamed = durableMachine(createMachine({ id: "order", initial: "paying", states: { paying: {} } }), {
      version: 2,
    });
    const moved = await getFailure(resume(renamed, { store: peer, thread: "t", world }).result, "needs_migration");
    expect(moved.message).toContain('is in the state "charging"');
  });
});

describe("durable machine under a newer version [E50]", () => {
  const first = setup({
    types: { context: {} as { cents: number }, events: {} as { type: "SIGN" } },
  }).createMachine({
    id: "deal",
    initial: "asked",
    context: { cents: 900 },
    states: {
      asked: { on: { SIGN: "over" }, after: { 5000: "late" } },
      late: { on: { SIGN: "over" } },
      over: { type: "final" },
    },
  });
  const second = setup({
    types: { context: {} as { euros: number }, events: {} as { type: "SIGN" } },
  }).createMachine({
    id: "deal",
    initial: "review",
    context: { euros: 0 },
    states: {
      review: {
        initial: "legal",
        states: { legal: { on: { SIGN: "#deal.over" }, after: { 5000: "#deal.late" } } },
      },
      late: { on: { SIGN: "over" } },
      over: { type: "final" },
    },
  });
  const [v1, v2] = [durableMachine(first, { version: 1 }), durableMachine(second, { version: 2 })];
  const toV2 = defineMigration({
    from: v1,
    to: v2,
    nodes: { asked: "review.legal" },
    state: (old) => ({ context: { euros: old.context.cents / 100 } }),
  });

  test("a migrated durable machine continues with a renamed state and a new context, and its delay keeps its due time", async () => {
    const world = createVirtualWorld();
    for (const signs of [true, false]) {
      const store = memoryStore();
      await run(v1, { store, thread: "t", world }).result;
      const [{ dueAt } = { dueAt: 0 }] = await store.timers({});
      const refused = await getFailure(
        resume(v2, { store: store.peer(), thread: "t", world }).result,
        "needs_migration",
      );
      expect(refused.message).toContain('is in the state "asked"');
      if (!signs) await world.advance(5_000);
      const answers = signs ? { answers: { SIGN: {} } } : {};
      const end = await resume(v2, { store, thread: "t", world, migrations: [toV2], ...answers }).result;
      expect(end.state.context).toEqual({ euros: 9 });
      expect([end.status, end.state.value]).toEqual(signs ? ["done", "over"] : ["waiting", "late"]);
      expect(dueAt).toBe(1_005_000);
      const sources: string[] = [];
      for await (const step of getHistory(v2, { store, thread: "t" })) sources.push(step.source);
      expect(sources).toEqual(["step", "migration", "input"]);
    }
  });

  test("a promise active under a renamed state parks the run, and the older machine version continues with the promise", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const of = (state: string, version: number, charge: () => Promise<string>) => {
      const states = { [state]: { invoke: { src: "charge", onDone: "over" } }, over: { type: "final" } };
      const actors = { charge: fromPromise(charge) };
      return durableMachine(
        createMachine({ id: "deal", initial: state, states } as never).provide({ actors } as never),
        {
          version,
        },
      );
    };
    const old = of("charging", 1, () => new Promise(() => undefined));
    ignoreResult(run(old, { store, thread: "t", world }).result);
    await world.waitUntilIdle();
    store.crash();
    const peer = store.peer();
    const now = of("paying", 2, async () => "twice");
    const migrations = [defineMigration({ from: old, to: now, nodes: { charging: "paying" } as never })];
    const parked = await getFailure(
      resume(now, { store: peer, thread: "t", world, migrations }).result,
      "needs_migration",
    );
    expect(parked.message).toContain('the actor "0.deal.charging" is running');
    const asked = await resume(now, { store: peer, thread: "t", world, older: [old] }).result;
    expect(asked).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt" }] });
  });

  test("a migration of a durable machine that covers more than states and context is refused", async () => {
    const getMigrationFailure = (more: object) =>
      getFailure(
        () => defineMigration({ from: v1, to: v2, state: () => ({ context: { euros: 1 } }), ...more } as never),
        "invalid_option",
      );
    expect((await getMigrationFailure({ interrupts: { SIGN: "SIGN" } })).message).toContain(
      "expected only renamed states",
    );
    expect((await getMigrationFailure({ nodes: { asked: "gone" } })).message).toContain('"gone"');
    const store = memoryStore();
    await run(v1, { store, thread: "t" }).result;
    const moves = defineMigration({ from: v1, to: v2, state: () => ({ context: { euros: 1 }, value: "over" }) });
    const failed = await getFailure(resume(v2, { store, thread: "t", migrations: [moves] }).result, "migration_failed");
    expect(failed.message).toContain("a user-written machine accepts only the context");
  });
});

describe("timers and child machines", () => {
  const reminder = setup({}).createMachine({
    id: "reminder",
    initial: "asked",
    context: { reminders: 0 },
    states: {
      asked: {
        on: { ANSWER: "answered" },
        after: {
          3000000000: {
            target: "asked",
            reenter: true,
            actions: assign({ reminders: ({ context }) => (context["reminders"] as number) + 1 }),
          },
        },
      },
      answered: { type: "final" },
    },
  });

  test("a timer that became due while its process was down fires once on return, before new events [E53]", async () => {
    const graph = durableMachine(reminder, { version: 1 });
    const store = memoryStore();
    const world = createVirtualWorld();
    expect((await run(graph, { store, thread: "t", world }).result).status).toBe("waiting");
    expect(world.timers).toBe(0);
    await world.advance(2_999_999_999);
    expect((await resume(graph, { store, thread: "t", world }).result).state.context).toEqual({ reminders: 0 });
    await world.advance(10_000_000_000);
    expect((await resume(graph, { store, thread: "t", world }).result).state.context).toEqual({ reminders: 1 });
    expect((await resume(graph, { store, thread: "t", world }).result).state.context).toEqual({ reminders: 1 });
    const done = await resume(graph, { store, thread: "t", world, answers: { ANSWER: true } }).result;
    expect(done).toMatchObject({ status: "done", state: { value: "answered", context: { reminders: 1 } } });
  });

  test("an event after the timeout of its state is refused, and the transition of the timer is kept", async () => {
    const machine = createMachine({
      id: "expiring",
      initial: "open",
      states: {
        open: { on: { CONFIRM: "confirmed" }, after: { 1000: "expired" } },
        confirmed: { type: "final" },
        expired: { on: { REOPEN: "open" } },
      },
    });
    const graph = durableMachine(machine, { version: 1 });
    const store = memoryStore();
    const world = createVirtualWorld();
    await run(graph, { store, thread: "t", world }).result;
    await world.advance(5000);
    const refusal = await getFailure(
      resume(graph, { store, thread: "t", world, answers: { CONFIRM: true } }).result,
      "event_refused",
    );
    expect(refusal.message).toContain('Send one of "REOPEN"');
    const state = await getState(graph, { store, thread: "t" });
    expect(state).toMatchObject({ state: { value: "expired" }, status: "waiting" });
    const again = await resume(graph, { store, thread: "t", world, answers: { REOPEN: true } }).result;
    expect(again).toMatchObject({ status: "waiting", state: { value: "open" } });
  });

  test("work started by a timer continues when the event after the timer is refused, and the refusal is reported at the end", async () => {
    for (const [onTime, why] of [
      ["packing", "Wait until its running promises and timers have finished: the machine accepts no event before"],
      ["over", "a finished run accepts no events"],
    ] as const) {
      const machine = setup({ actors: { pack: fromPromise(() => Promise.resolve("a parcel")) } }).createMachine({
        id: "parcel",
        initial: "open",
        states: {
          open: { on: { CHANGE: "open" }, after: { 1000: onTime } },
          packing: { invoke: { src: "pack", onDone: "over" } },
          over: { type: "final" },
        },
      });
      const graph = durableMachine(machine, { version: 1, effects: { pack: "idempotent" } });
      const [store, world] = [memoryStore(), createVirtualWorld()];
      await run(graph, { store, thread: "t", world }).result;
      await world.advance(5000);
      const answering = resume(graph, { store, thread: "t", world, answers: { CHANGE: true } });
      const refusal = await getFailure(answering.result, "event_refused");
      expect([refusal.message, refusal.details]).toMatchObject([expect.stringContaining(why), { accepts: [] }]);
      const now = await getState(graph, { store, thread: "t" });
      expect(now, onTime).toMatchObject({ state: { value: "over" }, status: "done" });
    }
  });

  test("an event that arrives while the process stops is processed before the run pauses", async () => {
    const machine = setup({ actors: { pack: fromPromise(() => Promise.resolve("a parcel")) } }).createMachine({
      id: "parcel",
      initial: "open",
      states: {
        open: { on: { CONFIRM: "packing" } },
        packing: { invoke: { src: "pack", onDone: "over" } },
        over: { type: "final" },
      },
    });
    const graph = durableMachine(machine, { version: 1, effects: { pack: "idempotent" } });
    for (const now of [false, true]) {
      const store = memoryStore();
      await run(graph, { store, thread: "t" }).result;
      const host = engine({ store, graphs: [graph] });
      await host.start();
      const answering = host.resume(graph, { thread: "t", answers: { CONFIRM: true } });
      await host.stop({ now });
      expect(await answering.result).toMatchObject({ status: "paused", state: { value: "packing" } });
      expect((await resume(graph, { store, thread: "t" }).result).state.value).toBe("over");
    }
  });

  test("a durable machine that is stopped during the save of its final transition is done", async () => {
    const machine = createMachine({
      id: "door",
      initial: "open",
      states: { open: { on: { CLOSE: "closed" } }, closed: { type: "final" } },
    });
    const graph = durableMachine(machine, { version: 1 });
    const stops: readonly ((going: RunHandle<unknown>) => void)[] = [
      (going) => going.cancel(),
      (going) => going.drain(),
    ];
    for (const stop of stops) {
      const store = memoryStore();
      await run(graph, { store, thread: "t" }).result;
      const going = resume(graph, { store, thread: "t", answers: { CLOSE: true } });
      const { commit } = store;
      store.commit = (write, onCommitted) => {
        if (write.run?.status === "done") stop(going);
        commit(write, onCommitted);
      };
      expect(await going.result).toMatchObject({ status: "done", state: { value: "closed" } });
    }
  });

  test("a cancelled timer does not fire, and a rearmed timer fires only at its new time", async () => {
    const machine = createMachine({
      id: "again",
      initial: "a",
      context: { ticks: 0 },
      states: {
        a: {
          entry: [
            raise({ type: "TICK" }, { id: "tick", delay: 100 }),
            raise({ type: "GONE" }, { id: "gone", delay: 120 }),
          ],
          on: {
            TICK: { actions: assign({ ticks: ({ context }) => context.ticks + 1 }) },
            GONE: "wrong",
          },
          after: {
            50: { actions: [cancel("gone"), cancel("tick"), raise({ type: "TICK" }, { id: "tick", delay: 100 })] },
            400: "end",
          },
        },
        wrong: { type: "final" },
        end: { type: "final" },
      },
    });
    const world = createVirtualWorld();
    const store = memoryStore();
    const graph = durableMachine(machine as AnyStateMachine, { version: 1 });
    const at = async (ms: number) => {
      await world.advance(1_000_000 + ms - world.clock.now());
      return (await resume(graph, { store: store.peer(), thread: "t", world }).result).state;
    };
    expect((await run(graph, { store, thread: "t", world }).result).status).toBe("waiting");
    expect(await at(50)).toMatchObject({ value: "a", context: { ticks: 0 } });
    expect(await at(149)).toMatchObject({ value: "a", context: { ticks: 0 } });
    expect(await at(151)).toMatchObject({ value: "a", context: { ticks: 1 } });
    expect(await at(399)).toMatchObject({ value: "a", context: { ticks: 1 } });
    expect(await at(400)).toMatchObject({ value: "end", context: { ticks: 1 } });
  });

  const worker = setup({
    types: { context: {} as { done: string[]; n: number }, input: {} as { n: number }, output: {} as string[] },
    actors: { fetch: fromPromise<string, number>(async ({ input: n }) => `part ${n}`) },
  }).createMachine({
    id: "worker",
    context: ({ input: { n } }) => ({ done: [], n }),
    initial: "fetching",
    states: {
      fetching: {
        invoke: {
          src: "fetch",
          input: ({ context }) => context.n,
          onDone: {
            target: "resting",
            actions: assign({ done: ({ context, event }) => [...context.done, event.output] }),
          },
        },
      },
      resting: {
        after: { 10: [{ guard: ({ context }) => context.done.length > 1, target: "over" }, { target: "fetching" }] },
      },
      over: { type: "final", entry: sendParent({ type: "HELLO" }) },
    },
    output: ({ context }) => context.done,
  });

  test("a child machine is saved with its context and continues in another process [E53]", async () => {
    const machine = setup({
      types: { context: {} as { parts: string[]; hello: number } },
      actors: { worker },
    }).createMachine({
      id: "boss",
      context: { parts: [], hello: 0 },
      initial: "on",
      states: {
        on: {
          on: { HELLO: { actions: assign({ hello: ({ context }) => context.hello + 1 }) } },
          invoke: {
            src: "worker",
            id: "w",
            input: { n: 3 },
            onDone: { target: "off", actions: assign({ parts: ({ event }) => event.output }) },
          },
        },
        off: { type: "final" },
      },
    });
    const graph = durableMachine(machine, { version: 1, effects: { worker: { fetch: "idempotent" } } });
    const store = memoryStore();
    const world = createVirtualWorld();
    // HELLO can also come from outside, so the machine is idle while its child waits for a timer only.
    const first = await run(graph, { store, thread: "t", world }).result;
    expect(first.state.children).toEqual({
      w: { src: "worker", value: "resting", context: { done: ["part 3"], n: 3 } },
    });
    await world.advance(10);
    await resume(graph, { store: store.peer(), thread: "t", world }).result;
    await world.advance(10);
    const last = await resume(graph, { store: store.peer(), thread: "t", world }).result;
    expect(last.state).toMatchObject({
      value: "off",
      children: {},
      context: { parts: ["part 3", "part 3"], hello: 1 },
    });
  });

  test("a child machine that ends stops its promises and timers", async () => {
    const world = createVirtualWorld();
    const reasons: string[] = [];
    const child = setup({
      actors: {
        endless: fromPromise(({ signal }) => {
          signal.addEventListener("abort", () => reasons.push((signal.reason as Error).message));
          return new Promise(() => undefined);
        }),
      },
    }).createMachine({
      id: "child",
      entry: [spawnChild("endless", { id: "x" }), raise({ type: "LATE" }, { delay: 1000 })],
      initial: "a",
      states: { a: { after: { 10: "b" } }, b: { type: "final" } },
    });
    const machine = setup({ actors: { child } }).createMachine({
      id: "parent",
      initial: "a",
      states: { a: { invoke: { src: "child", onDone: "b" } }, b: { after: { 10: "c" } }, c: { type: "final" } },
    });
    const store = memoryStore();
    const handle = run(durableMachine(machine, { version: 1 }), { store, thread: "t", world });
    await world.advance(15);
    expect(reasons).toEqual(['the machine left the state that started "x"']);
    expect(world.timers).toBe(0);
    expect(await handle.result).toMatchObject({ status: "paused", state: { children: {} } });
    await world.advance(10);
    expect((await resume(durableMachine(machine, { version: 1 }), { store, thread: "t", world }).result).status).toBe(
      "done",
    );
  });

  test("machines send each other events, spawn children and stop children; emitted events and logs are reported [E53]", async () => {
    const echo = createMachine({
      id: "echo",
      initial: "on",
      states: { on: { on: { PING: { actions: sendParent({ type: "PONG" }) } } } },
    });
    const machine = setup({ actors: { echo }, types: { context: {} as { pongs: number } } }).createMachine({
      id: "talk",
      context: { pongs: 0 },
      entry: spawnChild("echo", { id: "e/1" }),
      initial: "a",
      states: {
        a: {
          entry: [sendTo("e/1", { type: "PING" }), sendTo("e/1", { type: "PING" }, { delay: 20 })],
          always: { guard: ({ context }) => context.pongs === 2, target: "b" },
        },
        b: { entry: [stopChild("e/1"), emit({ type: "said" }), log("bye", "talk")], type: "final" },
      },
      on: { PONG: { actions: assign({ pongs: ({ context }) => context.pongs + 1 }) } },
    });
    const graph = durableMachine(machine, { version: 1 });
    const store = memoryStore();
    const world = createVirtualWorld();
    const first = await run(graph, { store, thread: "t", world }).result;
    expect(first.state).toMatchObject({ context: { pongs: 1 }, children: { "e%2F1": { value: "on" } } });
    await world.advance(20);
    const handle = resume(graph, { store, thread: "t", world });
    const events = collectEvents(handle);
    expect(await handle.result).toMatchObject({
      status: "done",
      state: { value: "b", context: { pongs: 2 }, children: {} },
    });
    expect(getOnlyEvent(events, "custom").map(({ name }) => name)).toEqual(["said"]);
    expect(world.lines).toEqual([{ level: "info", message: "talk", fields: { value: "bye" } }]);
  });
});

describe("machine actions", () => {
  test("an action runs when its transition is saved, and runs once", async () => {
    const store = memoryStore();
    const seen: string[] = [];
    const machine = setup({
      actions: {
        note: ({ context }) => {
          seen.push(`${JSON.stringify(context)} at ${heads()}`);
        },
      },
    }).createMachine({
      id: "noted",
      context: { n: 1 },
      initial: "a",
      states: { a: { entry: "note", on: { GO: { target: "b", actions: "note" } } }, b: { type: "final" } },
    });
    let saved = 0;
    const heads = (): number => saved;
    const counting: Store = Object.assign(Object.create(store) as MemoryStore, {
      commit: (commit: Commit, onCommitted: Parameters<Store["commit"]>[1]) =>
        store.commit(commit, (failure) => {
          if (commit.checkpoint !== undefined) saved += 1;
          onCommitted(failure);
        }),
    });
    const graph = durableMachine(machine, { version: 1 });
    const world = createVirtualWorld();
    await run(graph, { store: counting, thread: "t", world }).result;
    await resume(graph, { store: counting, thread: "t", world }).result;
    await resume(graph, { store: counting, thread: "t", world, answers: { GO: true } }).result;
    expect(seen).toEqual(['{"n":1} at 1', '{"n":1} at 2']);
  });

  test("an action that throws fails the run after its transition, and a resume continues after that action", async () => {
    const store = memoryStore();
    const machine = setup({
      actions: {
        boom: () => {
          throw new Error("boom");
        },
      },
    }).createMachine({
      id: "boom",
      initial: "a",
      states: { a: { entry: "boom", after: { 5: "b" } }, b: { type: "final" } },
    });
    const world = createVirtualWorld();
    const graph = durableMachine(machine, { version: 1 });
    const failure = await getFailure(run(graph, { store, thread: "t", world }).result, "machine_failed");
    expect(failure.message).toContain('the action "boom"');
    await world.advance(5);
    expect((await resume(graph, { store, thread: "t", world }).result).status).toBe("done");
  });

  test("a guard that throws fails the run, and the thread keeps its state", async () => {
    const store = memoryStore();
    let broken = true;
    const machine = createMachine({
      id: "guarded",
      initial: "a",
      states: {
        a: {
          after: {
            5: {
              target: "b",
              guard: () => {
                if (broken) throw new Error("boom");
                return true;
              },
            },
          },
        },
        b: { type: "final" },
      },
    });
    const graph = durableMachine(machine, { version: 1 });
    const world = createVirtualWorld();
    await run(graph, { store, thread: "t", world }).result;
    await world.advance(5);
    const failed = getFailure(resume(graph, { store, thread: "t", world }).result, "machine_failed");
    expect((await failed).message).toContain('"guarded"');
    broken = false;
    expect((await resume(graph, { store, thread: "t", world }).result).state.value).toBe("b");
  });
});

describe("invalid durable machine", () => {
  const callback = fromCallback(() => undefined);
  const refusals: readonly (readonly [string, () => AnyStateMachine, string])[] = [
    [
      "a callback",
      () =>
        setup({ actors: { callback } }).createMachine({
          id: "m",
          initial: "a",
          states: { a: { invoke: { src: "callback" } } },
        }),
      '"m.a" invokes "callback", which is neither',
    ],
    [
      "an observable",
      () =>
        setup({
          actors: { o: fromObservable(() => ({ subscribe: () => ({ unsubscribe: () => undefined }) }) as never) },
        }).createMachine({ id: "m", initial: "a", states: { a: { invoke: { src: "o" } } } }),
      '"m.a" invokes "o", which is neither',
    ],
    [
      "a transition function",
      () =>
        setup({ actors: { t: fromTransition((state: number) => state, 0) } }).createMachine({
          id: "m",
          initial: "a",
          states: { a: { invoke: { src: "t" } } },
        }),
      '"m.a" invokes "t", which is neither',
    ],
    [
      "a history state",
      () =>
        createMachine({
          id: "m",
          initial: "a",
          states: { a: { initial: "b", states: { b: {}, h: { type: "history" } } } },
        }),
      '"m.a.h" is a history state',
    ],
    [
      "an inline actor",
      () => createMachine({ id: "m", initial: "a", states: { a: { invoke: { src: fromPromise(async () => 1) } } } }),
      '"m.a" invokes an unnamed actor',
    ],
    [
      "a spawned inline actor",
      () =>
        createMachine({
          id: "m",
          initial: "a",
          states: {
            a: {
              entry: spawnChild(
                fromPromise(async () => 1),
                { id: "x" },
              ) as never,
            },
          },
        }),
      '"m.a" spawns an unnamed actor',
    ],
    [
      "a spawned actor without an id",
      () =>
        setup({ actors: { p: fromPromise(async () => 1) } }).createMachine({
          id: "m",
          initial: "a",
          states: { a: { entry: spawnChild("p") } },
        }),
      '"m.a" spawns "p" without an id',
    ],
    [
      "an actor that is not there",
      () => createMachine({ id: "m", initial: "a", states: { a: { invoke: { src: "nobody" } } } }),
      '"m.a" invokes "nobody", which is not an actor of the machine',
    ],
    [
      "a callback in a child machine",
      () =>
        setup({
          actors: {
            child: setup({ actors: { callback } }).createMachine({
              id: "c",
              initial: "a",
              states: { a: { invoke: { src: "callback" } } },
            }),
          },
        }).createMachine({ id: "m", initial: "a", states: { a: { invoke: { src: "child" } } } }),
      '"c.a" invokes "callback", which is neither',
    ],
  ];
  for (const [name, machine, message] of refusals) {
    test(`a durable machine with ${name} is refused [E53]`, async () => {
      const refusal = await getFailure(() => durableMachine(machine(), { version: 1 }), "invalid_graph");
      expect(refusal.message).toContain(message);
    });
  }

  test("all problems of a durable machine are reported together, including an effect class for an unknown actor [E53]", async () => {
    const machine = createMachine({
      id: "m",
      initial: "a",
      states: { a: { invoke: { src: "nobody" } }, h: { type: "history" } },
    });
    const refusal = await getFailure(
      () => durableMachine(machine, { version: 1, effects: { chrage: "once" } as never }),
      "invalid_graph",
    );
    expect((refusal.details as readonly { code: string }[]).map(({ code }) => code)).toEqual([
      "unknown_effect",
      "missing_actor",
      "history_state",
    ]);
  });

  test("a durable machine without an id is refused with the line to add, in the list of all problems [FX45]", async () => {
    const machine = createMachine({ initial: "a", states: { a: { invoke: { src: "nobody" } } } });
    const refusal = await getFailure(() => durableMachine(machine, { version: 1 }), "invalid_graph");
    expect(refusal.message).toContain('createMachine({ id: "order", … })');
    expect((refusal.details as readonly { code: string }[]).map(({ code }) => code)).toEqual([
      "missing_id",
      "missing_actor",
    ]);
    const named = await getFailure(() => durableMachine(createMachine({ id: "a b" }), { version: 1 }), "invalid_graph");
    expect(named.details).toMatchObject([{ code: "invalid_id" }]);
  });

  test("a durable machine with an invalid version is refused", async () => {
    await getFailure(() => durableMachine(createMachine({ id: "m" }), { version: 0 }), "invalid_option");
  });

  test("a spawn inside an assign of a transition fails the run and names thread, state and fix [FX45]", async () => {
    const machine = setup({ actors: { p: fromPromise(async () => 1) } }).createMachine({
      id: "m",
      context: {},
      initial: "ready",
      states: { ready: { on: { GO: { actions: assign(({ spawn }) => ({ ref: spawn("p", { id: "p" }) })) } } } },
    });
    const graph = durableMachine(machine, { version: 1 });
    const open = { store: memoryStore(), thread: "order-9", world: createVirtualWorld() };
    await run(graph, open).result;
    const failure = await getFailure(resume(graph, { ...open, answers: { GO: {} } }).result, "machine_failed");
    expect(failure.message).toContain('"ready"');
    expect(failure.message).toContain("order-9");
    expect(failure.message).toContain("Use spawnChild with an id");
  });

  test("a spawn inside an assign fails the run that executes it and names thread, state and fix [FX45]", async () => {
    const machine = setup({ actors: { p: fromPromise(async () => 1) } }).createMachine({
      id: "m",
      context: {},
      initial: "ready",
      states: { ready: { entry: assign(({ spawn }) => ({ ref: spawn("p", { id: "p" }) })) } },
    });
    const failure = await getFailure(
      run(durableMachine(machine, { version: 1 }), { thread: "t", world: createVirtualWorld() }).result,
      "machine_failed",
    );
    expect(String((failure.cause as Error).message)).toContain("Use spawnChild");
    expect(failure.message).toContain('"m.ready"');
    expect(failure.message).toContain('thread "t"');
  });
});

// Random machine: sequential or parallel steps; a step is a promise, a delay or a machine of such steps.

type Part =
  | { readonly kind: "promise"; readonly ms: number; readonly fails: boolean }
  | { readonly kind: "timer"; readonly ms: number }
  | { readonly kind: "child"; readonly plan: Plan }
  | { readonly kind: "spawned"; readonly ms: number };
interface Plan {
  readonly lanes: readonly (readonly Part[])[];
}

const { plan } = fc.letrec<{ plan: Plan; part: Part }>((tie) => ({
  part: fc.oneof(
    { maxDepth: 2, depthSize: "small" },
    fc.record({ kind: fc.constant("promise" as const), ms: fc.nat(30), fails: fc.boolean() }),
    fc.record({ kind: fc.constant("timer" as const), ms: fc.nat(30) }),
    fc.record({ kind: fc.constant("spawned" as const), ms: fc.nat(30) }),
    fc.record({ kind: fc.constant("child" as const), plan: tie("plan") }),
  ),
  plan: fc.record({
    lanes: fc.array(fc.array(tie("part"), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 2 }),
  }),
}));

function createPlanMachine(given: Plan, world: VirtualWorld, startedActors: string[], id = "m"): AnyStateMachine {
  const actors: Record<string, unknown> = {};
  const createLane = (parts: readonly Part[], l: number) => ({
    initial: "s0",
    states: Object.fromEntries([
      ...parts.map((part, p) => {
        const name = `a${l}_${p}`;
        const assignOutcome = (how: string) =>
          assign({
            [name]: ({ event }: { event: { output?: unknown; error?: Error } }) => ({
              how,
              output: event.output,
              error: event.error?.message,
            }),
          });
        const onEnd = {
          onDone: { target: `s${p + 1}`, actions: assignOutcome("done") },
          onError: { target: `s${p + 1}`, actions: assignOutcome("error") },
        };
        if (part.kind === "timer")
          return [`s${p}`, { after: { [part.ms]: { target: `s${p + 1}`, actions: assignOutcome("timer") } } }];
        if (part.kind === "child") actors[name] = createPlanMachine(part.plan, world, startedActors, name);
        else
          actors[name] = fromPromise(
            ({ input: n, self }: { input: unknown; self: { readonly sessionId: string } }) =>
              new Promise((resolve, reject) => {
                startedActors.push(self.sessionId);
                world.schedule.after(part.ms, () =>
                  part.kind === "promise" && part.fails ? reject(new Error(`no ${n}`)) : resolve({ n }),
                );
              }),
          );
        if (part.kind === "spawned")
          return [
            `s${p}`,
            {
              entry: spawnChild(name, { id: name, input: name } as never),
              on: { [`xstate.done.actor.${name}`]: { target: `s${p + 1}`, actions: assignOutcome("done") } },
            },
          ];
        return [`s${p}`, { invoke: { src: name, id: name, input: name, ...onEnd } }];
      }),
      [`s${parts.length}`, { type: "final" }],
    ]),
  });
  return createMachine({
    id,
    context: {},
    type: "parallel",
    states: Object.fromEntries(given.lanes.map((parts, l) => [`l${l}`, createLane(parts, l)])),
    output: ({ context }: { context: unknown }) => context,
  } as never).provide({ actors } as never) as AnyStateMachine;
}

/** Every actor may be restarted. */
function declareIdempotent(given: Plan): object {
  return Object.fromEntries(
    given.lanes.flatMap((parts, l) =>
      parts.flatMap((part, p) =>
        part.kind === "timer"
          ? []
          : [[`a${l}_${p}`, part.kind === "child" ? declareIdempotent(part.plan) : "idempotent"]],
      ),
    ),
  );
}

/** Runs to the end; the process dies directly before or after its nth commit, and another process continues. */
async function live(given: Plan, dies: { readonly nth: number; readonly after: boolean } | undefined, effects: object) {
  const world = createVirtualWorld();
  const store = memoryStore();
  const startedActors: string[] = [];
  /** Keys of promises that an answer declared as not done. */
  const decided: string[] = [];
  const graph = () =>
    durableMachine(createPlanMachine(given, world, startedActors), { version: 1, effects: effects as never });
  let commits = 0;
  let died = false;
  const dying: Store = Object.assign(Object.create(store) as MemoryStore, {
    commit: (commit: Commit, onCommitted: Parameters<Store["commit"]>[1]) => {
      if (died) return;
      commits += 1;
      if (dies?.nth !== commits) {
        store.commit(commit, (failure) => (died ? undefined : onCommitted(failure)));
        return;
      }
      died = true;
      if (!dies.after) store.crash();
      else store.commit(commit, () => store.crash());
    },
  });
  const finished = async (handle: { readonly result: Promise<RunResult<unknown>> }) => {
    let result: RunResult<unknown> | undefined;
    let failure: unknown;
    handle.result.then((value) => (result = value)).catch((error) => (failure = error));
    for (let turn = 0; turn < 60 && result === undefined && failure === undefined && !died; turn++)
      await world.advance(20);
    if (failure !== undefined && !died) throw failure;
    return result;
  };
  let first = await finished(run(graph(), { store: dying, thread: "t", world }));
  while (first?.status === "paused" && !died) {
    await world.advance(20);
    first = await finished(resume(graph(), { store: dying, thread: "t", world }));
  }
  await world.waitUntilIdle();
  if (!died) return { result: first, commits, startedActors, decided };
  died = false;
  const peer = store.peer();
  let result =
    (await peer.head("t")) === undefined
      ? await finished(run(graph(), { store: peer, thread: "t", world }))
      : await finished(resume(graph(), { store: peer, thread: "t", world }));
  while (result?.status === "waiting" || result?.status === "paused") {
    if (result.status === "paused") {
      await world.advance(20);
      result = await finished(resume(graph(), { store: peer, thread: "t", world }));
      continue;
    }
    const open = result.interrupts.filter(({ key }) => key === "in_doubt");
    decided.push(...open.map(({ payload }) => (payload as { readonly idempotencyKey: string }).idempotencyKey));
    const answers = Object.fromEntries(open.map(({ id }) => [id, { happened: false }]));
    result = await finished(resume(graph(), { store: peer, thread: "t", world, answers }));
  }
  return { result, commits, startedActors, decided };
}

const times = (keys: readonly string[], key: string): number => keys.filter((each) => each === key).length;

for (const effect of ["once", "idempotent"] as const) {
  test(`a durable machine with ${effect} promises that crashes at any commit ends like an uninterrupted one [E53]`, async () => {
    let crashes = 0;
    let doubts = 0;
    await fc.assert(
      fc.asyncProperty(plan, async (given) => {
        const effects = effect === "idempotent" ? declareIdempotent(given) : {};
        const whole = await live(given, undefined, effects);
        expect(whole.result?.status).toBe("done");
        const keys = new Set(whole.startedActors);
        expect(keys.size).toBe(whole.startedActors.length);
        for (let nth = 1; nth <= whole.commits; nth++) {
          for (const after of [false, true]) {
            const where = `${after ? "after" : "before"} commit ${nth}`;
            const { result, startedActors, decided } = await live(given, { nth, after }, effects);
            expect(result?.state, where).toEqual(whole.result?.state);
            // The order of two simultaneous ends decides the number in the later keys.
            expect(new Set(startedActors).size, where).toBe(keys.size);
            if (effect === "once")
              for (const key of startedActors)
                expect(times(startedActors, key), where).toBeLessThanOrEqual(1 + times(decided, key));
            else expect(decided).toEqual([]);
            doubts += decided.length;
            crashes += 1;
          }
        }
      }),
      { numRuns: 12 },
    );
    expect(crashes).toBeGreaterThan(50);
    expect(doubts > 0).toBe(effect === "once");
  });
}
