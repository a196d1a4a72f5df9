/** Engine: continues crashed runs, wakes for due timers and stops without losing work. */
import { describe, expect, test } from "vitest";
import { setup } from "xstate";
import * as z from "zod";
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  durableMachine,
  type EffectClass,
  END,
  engine,
  env,
  getHistory,
  getState,
  inject,
  type Log,
  memoryStore,
  recover,
  resume,
  run,
  START,
  type Store,
  submit,
  toolNode,
} from "../../../src/index.ts";
import { listRuns } from "../../../src/inspect.ts";
import { getFailure, ignoreResult } from "../../support/failure.ts";
import { call, gate, user } from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const Words = defineState({ word: z.string().default(""), log: channel.list(z.string()) });

function wordy() {
  const gates = new Map<string, ReturnType<typeof gate>>();
  const createGate = (word: string) => {
    const found = gates.get(word) ?? gate();
    gates.set(word, found);
    return found;
  };
  const aborted: string[] = [];
  const graph = defineGraph({ name: "wordy", state: Words, interrupts: { ok: z.boolean() } })
    .nodes({
      first: async ({ word }, { interrupt, signal }) => {
        signal.addEventListener("abort", () => aborted.push(word));
        if (word.startsWith("slow")) await createGate(word).passed;
        if (word.startsWith("ask")) await interrupt("ok");
        if (word.startsWith("fail")) throw new Error("no");
        return { log: [`${word} 1`] };
      },
      second: ({ word }) => ({ log: [`${word} 2`] }),
    })
    .edges({ [START]: "first", first: "second", second: END });
  return { graph, aborted, open: (word: string) => createGate(word).open(undefined) };
}

const statuses = async (store: Store) =>
  (await listRuns(store)).map(({ thread, status }) => `${thread} ${status}`).sort();

async function advanceClock(world: VirtualWorld, ms = 1_000): Promise<void> {
  await world.advance(ms);
  await world.waitUntilIdle();
}

describe("engine", () => {
  test("the option log of an engine receives the runs that it cannot start, and its world keeps its clock", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const owned = defineGraph({ name: "owned", state: Words, context: defineContext({ owner: z.string() }) })
      .nodes({ a: (_state, { context }) => ({ log: [context.owner] }) })
      .edges({ [START]: "a", a: END });
    await submit(owned, { store, world, thread: "t" });
    const lines: string[] = [];
    const log: Log = (level, message, fields) => void lines.push(`${level}: ${message}: ${String(fields?.["thread"])}`);
    let owner: string | undefined;
    const host = engine({ store, graphs: [owned], world, log, context: () => ({ owner }) });
    await host.start();
    await world.waitUntilIdle();
    expect(lines).toEqual(["warn: a run started from the queue failed: t", "warn: a run failed: t"]);
    expect(world.lines).toEqual([]);
    owner = "ann";
    await advanceClock(world, 60_000);
    expect(await statuses(store)).toEqual(["t done"]);
    await host.stop();
    expect(() => engine({ store, graphs: [], log: "stderr" as never })).toThrow("log");
  });

  test("an engine start recovers crashed runs, fires due timers and starts queued inputs [E62]", async () => {
    const world = createVirtualWorld();
    const { graph, open } = wordy();
    const reminder = durableMachine(
      setup({ types: { events: {} as { type: "NO" } } }).createMachine({
        id: "reminder",
        initial: "quiet",
        states: { quiet: { on: { NO: "over" }, after: { 60000: "over" } }, over: { type: "final" } },
      }),
      { version: 1 },
    );
    const first = memoryStore();
    await run(reminder, { store: first, world, thread: "timer" }).result;
    ignoreResult(run(graph, { store: first, world, thread: "crashed", input: { word: "slow" } }).result);
    await run(graph, { store: first, world, thread: "free", input: { word: "a" } }).result;
    const busy = run(graph, { store: first, world, thread: "free", input: { word: "slow b" } });
    await world.waitUntilIdle();
    await run(graph, { store: first.peer(), world, thread: "free", input: { word: "c" }, onBusy: "enqueue" }).result;
    busy.on(({ type }) => (type === "run.completed" ? first.crash() : undefined));
    open("slow b");
    await busy.result;
    open("slow");
    await world.advance(60_000);
    const store = first.peer();
    expect(await statuses(store)).toEqual([
      "crashed crashed",
      "free done",
      "free done",
      "free queued",
      "timer waiting",
    ]);
    const host = engine({ store, graphs: [graph, reminder], world });
    await host.start();
    await host.start();
    await world.waitUntilIdle();
    expect(await statuses(store)).toEqual(["crashed done", "free done", "free done", "free done", "timer done"]);
    await host.stop();
    await host.stop();
    expect(world.timers).toBe(0);
  });

  test("an engine sleeps until the next timer is due and polls for work of other processes [E62]", async () => {
    const world = createVirtualWorld();
    const { graph, open } = wordy();
    const ticker = durableMachine(
      setup({ types: { events: {} as { type: "NO" } } }).createMachine({
        id: "ticker",
        initial: "quiet",
        states: {
          quiet: { on: { NO: "over" }, after: { 700: "loud" } },
          loud: { after: { 300: "over" } },
          over: { type: "final" },
        },
      }),
      { version: 1 },
    );
    const store = memoryStore();
    let looks = 0;
    const watched: Store = {
      ...store,
      claimable: (page) => {
        if (page.kind === "incompatible") looks += 1;
        return store.claimable(page);
      },
    };
    const host = engine({ store: watched, graphs: [graph, ticker], world, pollMs: 10_000 });
    await host.start();
    expect(looks).toBe(1);
    await host.run(ticker, { thread: "t" }).result;
    await world.waitUntilIdle();
    await advanceClock(world, 699);
    expect(await statuses(store)).toEqual(["t waiting"]);
    await advanceClock(world, 1);
    expect(looks).toBe(2);
    await advanceClock(world, 300);
    expect(await statuses(store)).toEqual(["t done"]);
    const peer = store.peer();
    ignoreResult(run(graph, { store: peer, world, thread: "u", input: { word: "slow" } }).result);
    await world.waitUntilIdle();
    peer.crash();
    open("slow");
    await advanceClock(world, 8_999);
    expect(await statuses(store)).toEqual(["t done", "u crashed"]);
    await advanceClock(world, 1_700);
    expect(await statuses(store)).toEqual(["t done", "u done"]);
    await host.stop();
    expect(world.timers).toBe(0);
  });

  test("an engine closes an expired interrupt and its run continues [E62, E63]", async () => {
    const world = createVirtualWorld();
    const ok = { answer: z.boolean(), expiresMs: 5_000, onExpire: false };
    const graph = defineGraph({ name: "asks", state: Words, interrupts: { ok } })
      .nodes({ ask: async (_state, { interrupt }) => ({ log: [String(await interrupt("ok"))] }) })
      .edges({ [START]: "ask", ask: END });
    const store = memoryStore();
    const host = engine({ store, graphs: [graph], world, pollMs: 60_000 });
    await host.start();
    expect((await host.run(graph, { thread: "t" }).result).status).toBe("waiting");
    await advanceClock(world, 4_999);
    expect(await statuses(store)).toEqual(["t waiting"]);
    await advanceClock(world, 1);
    expect((await getState(graph, { store, thread: "t" })).state.log).toEqual(["false"]);
    expect(await statuses(store)).toEqual(["t done"]);
    await host.stop();
    expect(world.timers).toBe(0);
  });

  test("engine.run and engine.resume use the store, secrets and world of the engine; plain run and resume serve only their own thread [E62]", async () => {
    const world = createVirtualWorld();
    const store = memoryStore();
    const Who = defineContext({ customer: z.string() });
    const seen: unknown[] = [];
    const pay = defineTool({
      name: "pay",
      description: "Pay.",
      input: z.object({}),
      inject: { key: inject.secret("KEY") },
      effect: "pure",
      run: (_args, { injected }) => {
        seen.push(injected.key.reveal());
        return "paid";
      },
    });
    const graph = defineGraph({
      name: "pays",
      state: defineState({ messages: channel.messages() }),
      context: Who,
      interrupts: { ok: z.boolean() },
    })
      .nodes({
        model: () => ({ messages: [{ role: "assistant", id: "a", content: [call("pay")], finish: "calls" }] as const }),
        tools: toolNode({ tools: [pay] }),
        ask: async (_state, { interrupt, context }) => {
          seen.push(context.customer);
          if (context.customer === "bob") seen.push(await interrupt("ok"));
          else await interrupt("ok");
        },
      })
      .edges({ [START]: "model", model: "tools", tools: "ask", ask: END });
    const host = engine({ store, graphs: [graph], world, secrets: { get: (name: string) => `the ${name}` } });
    const first = host.run(graph, { thread: "t", input: { messages: [user("go")] }, context: { customer: "ann" } });
    expect((await first.result).status).toBe("waiting");
    const second = await host.resume(graph, { thread: "t", context: { customer: "bob" }, answers: { ok: true } })
      .result;
    expect(second.status).toBe("done");
    expect(seen).toEqual(["the KEY", "ann", "bob", true]);
    await host.stop();
  });

  test("an engine skips runs of unknown graphs, logs them once, and continues after the error of one run", async () => {
    const world = createVirtualWorld();
    const { graph, open } = wordy();
    const dead = createVirtualWorld();
    const strange = defineGraph({ name: "strange", state: Words })
      .nodes({ work: () => gate().passed as Promise<undefined> })
      .edges({ [START]: "work", work: END });
    const first = memoryStore();
    for (const thread of ["s", "t"]) ignoreResult(run(strange, { store: first, world: dead, thread }).result);
    for (const word of ["slow", "slow fail"])
      ignoreResult(run(graph, { store: first, world: dead, thread: word.replace(" ", "-"), input: { word } }).result);
    await world.waitUntilIdle();
    first.crash();
    const store = first.peer();
    for (const word of ["slow", "slow fail"]) open(word);
    const bad = defineGraph({ name: "wordy", state: Words })
      .nodes({
        first: ({ word }) => {
          if (word === "slow fail") throw new Error("no");
          return {};
        },
        second: () => undefined,
      })
      .edges({ [START]: "first", first: "second", second: END });
    const host = engine({ store, graphs: [bad], world });
    await host.start();
    await world.waitUntilIdle();
    expect(await statuses(store)).toEqual(["s crashed", "slow done", "slow-fail failed", "t crashed"]);
    await advanceClock(world, 5_000);
    const said = world.lines.map(({ message, fields }) => `${message}: ${String(fields?.["thread"])}`);
    expect(said.sort()).toEqual([
      "a run failed: slow-fail",
      "a run is skipped: its graph is not served here: s",
      "a run is skipped: its graph is not served here: t",
    ]);
    await run(graph, { store, world, thread: "later", input: { word: "ask" } }).result;
    expect((await host.resume(graph, { thread: "later", answers: { ok: true } }).result).status).toBe("done");
    await host.stop();
  });

  test("an engine executes at most `concurrency` runs at the same time", async () => {
    const world = createVirtualWorld();
    let now = 0;
    let most = 0;
    let dying = true;
    const graph = defineGraph({ name: "counted", state: Words })
      .nodes({
        work: async (_state, { clock: _ }) => {
          if (dying) await gate().passed;
          now += 1;
          most = Math.max(most, now);
          await new Promise<void>((resolve) => world.schedule.after(10, resolve));
          now -= 1;
        },
      })
      .edges({ [START]: "work", work: END });
    const first = memoryStore();
    for (let index = 0; index < 20; index++)
      ignoreResult(run(graph, { store: first, world, thread: `t${index}` }).result);
    await world.waitUntilIdle();
    first.crash();
    dying = false;
    const store = first.peer();
    const host = engine({ store, graphs: [graph], world, concurrency: 3 });
    await host.start();
    await advanceClock(world, 500);
    expect(most).toBe(3);
    expect(await listRuns(store, { status: "done" })).toHaveLength(20);
    await host.stop();
    expect(world.timers).toBe(0);
  });

  test("onRun of an engine receives each run before its first event: recovered, started by the engine, and from the queue", async () => {
    const world = createVirtualWorld();
    const { graph, open } = wordy();
    const dead = memoryStore();
    ignoreResult(run(graph, { store: dead, world, thread: "left", input: { word: "slow a" } }).result);
    await world.waitUntilIdle();
    dead.crash();
    open("slow a");
    const observed: string[] = [];
    const host = engine({
      store: dead.peer(),
      graphs: [graph],
      world,
      onRun: (handle) => {
        handle.on(({ type }) => (type.startsWith("run.") ? observed.push(`${handle.thread} ${type}`) : undefined));
        if (handle.thread === "own") throw new Error("it harms nothing");
      },
    });
    await host.start();
    await world.waitUntilIdle();
    const own = host.run(graph, { thread: "own", input: { word: "slow b" } });
    await world.waitUntilIdle();
    const next = host.run(graph, { thread: "own", input: { word: "c" }, onBusy: "enqueue" });
    await world.waitUntilIdle();
    open("slow b");
    expect([(await own.result).status, (await next.result).status]).toEqual(["done", "done"]);
    await host.stop();
    expect(observed).toEqual([
      "left run.started",
      "left run.completed",
      "own run.started",
      "own run.queued",
      "own run.completed",
      "own run.started",
      "own run.completed",
    ]);
  });

  test("an async onRun that rejects does not affect the run, and the failure is logged", async () => {
    const world = createVirtualWorld();
    const { graph } = wordy();
    const onRun = async (): Promise<never> => {
      await Promise.resolve();
      throw new Error("too late");
    };
    const host = engine({ store: memoryStore(), graphs: [graph], world, onRun });
    const { status } = await host.run(graph, { thread: "t", input: { word: "a" } }).result;
    await host.stop();
    expect(status).toBe("done");
    expect(world.lines.map(({ message }) => message)).toEqual(["engine: onRun threw"]);
  });

  test("invalid engine options are refused", async () => {
    const store = memoryStore();
    for (const wrong of [{ concurrency: 0 }, { pollMs: -1 }, { graphs: "all" }, { interval: 5 }, { onRun: "x" }])
      expect((await getFailure(() => engine({ store, graphs: [], ...wrong } as never))).code).toBe("invalid_option");
    expect((await getFailure(() => engine({ graphs: [], secrets: env([]) } as never))).code).toBe("missing_store");
  });
});

describe("engine stop", () => {
  test("an engine stop drains: no run starts, active runs are saved at the next boundary, and the next engine continues them [C24]", async () => {
    const world = createVirtualWorld();
    const { graph, open, aborted } = wordy();
    const store = memoryStore();
    const host = engine({ store, graphs: [graph], world });
    await host.start();
    const own = host.run(graph, { thread: "own", input: { word: "slow" } });
    await world.waitUntilIdle();
    await run(graph, { store: store.peer(), world, thread: "own", input: { word: "behind" }, onBusy: "enqueue" })
      .result;
    let stopped = false;
    const stopping = host.stop().then(() => {
      stopped = true;
    });
    await advanceClock(world, 5_000);
    expect(stopped).toBe(false);
    expect((await getFailure(() => host.run(graph, { thread: "new" }))).code).toBe("engine_stopped");
    open("slow");
    await stopping;
    expect(await own.result).toMatchObject({
      status: "paused",
      cause: { code: "drained" },
      state: { log: ["slow 1"] },
    });
    expect([aborted, world.timers]).toEqual([[], 0]);
    expect(await statuses(store)).toEqual(["own paused", "own queued"]);
    const next = engine({ store: store.peer(), graphs: [graph], world });
    await next.start();
    await world.waitUntilIdle();
    expect(await statuses(store)).toEqual(["own done", "own done"]);
    await next.stop();
    expect(world.timers).toBe(0);
  });

  test("an engine accepts no run and no resume after it has stopped, until it is started again [FX12]", async () => {
    const { graph, open } = wordy();
    open("a");
    const store = memoryStore();
    for (const isStarted of [true, false]) {
      const host = engine({ store, graphs: [graph], world: createVirtualWorld() });
      if (isStarted) await host.start();
      await host.stop();
      const thread = `started-${isStarted}`;
      expect((await getFailure(() => host.run(graph, { thread, input: { word: "a" } }))).code).toBe("engine_stopped");
      expect((await getFailure(() => host.resume(graph, { thread }))).code).toBe("engine_stopped");
      expect(await store.thread(thread)).toBeUndefined();
      await host.start();
      expect((await host.run(graph, { thread, input: { word: "a" } }).result).status).toBe("done");
      await host.stop();
    }
  });

  test("an engine stop with `now`, or after its grace, fires the signals, records completed work, and a resume continues [C24]", async () => {
    for (const way of ["now", "second", "grace"] as const) {
      const world = createVirtualWorld();
      const ran: string[] = [];
      const aborted: string[] = [];
      const hold = gate();
      const tool = (name: string, effect: EffectClass, waits: boolean) =>
        defineTool({
          name,
          description: name,
          input: z.object({}),
          effect,
          run: async (_args, { signal }) => {
            ran.push(name);
            if (waits) {
              signal.addEventListener("abort", () => aborted.push(name));
              await hold.passed;
            }
            return "ok";
          },
        });
      const graph = defineGraph({ name: "tools", state: defineState({ messages: channel.messages() }) })
        .nodes({
          model: () => ({
            messages: [
              {
                role: "assistant",
                id: "a",
                content: [call("quick"), call("long"), call("pay")],
                finish: "calls",
              },
            ] as const,
          }),
          tools: toolNode({
            tools: [tool("quick", "once", false), tool("long", "idempotent", true), tool("pay", "once", true)],
          }),
          end: () => undefined,
        })
        .edges({ [START]: "model", model: "tools", tools: "end", end: END });
      const store = memoryStore();
      const host = engine({ store, graphs: [graph], world });
      await host.start();
      const handle = host.run(graph, { thread: "t", input: { messages: [user("go")] } });
      await world.waitUntilIdle();
      expect(ran.toSorted(), way).toEqual(["long", "pay", "quick"]);
      if (way === "now") await host.stop({ now: true });
      if (way === "second") {
        const first = host.stop();
        await world.waitUntilIdle();
        await host.stop({ now: true });
        await first;
      }
      if (way === "grace") {
        const stopping = host.stop({ graceMs: 5_000 });
        await advanceClock(world, 4_999);
        expect(ran.toSorted(), way).toEqual(["long", "pay", "quick"]);
        await advanceClock(world, 1);
        await stopping;
      }
      expect(await handle.result, way).toMatchObject({ status: "paused", cause: { code: "drained" } });
      expect([world.timers, aborted.toSorted()], way).toEqual([0, ["long", "pay"]]);
      // Finished effects are kept, interrupted ones rerun, and interrupted once effects raise an interrupt.
      hold.open(undefined);
      ran.length = 0;
      const [handed] = await recover({ store: store.peer(), graphs: [graph], world });
      expect(await handed?.result, way).toMatchObject({ status: "waiting", interrupts: [{ key: "in_doubt" }] });
      expect(ran, way).toEqual(["long"]);
      const answers = { in_doubt: { happened: true, content: "it was paid" } };
      const { status, state } = await resume(graph, { store, world, thread: "t", answers }).result;
      expect(status, way).toBe("done");
      expect(ran, way).toEqual(["long"]);
      const said = state.messages.flatMap((each) => (each.role === "tool" ? [[each.callId, each.isError]] : []));
      expect(said, way).toEqual([
        ["id_quick", false],
        ["id_long", false],
        ["id_pay", false],
      ]);
    }
  });

  test("an engine does not resume a run paused by a person, and unstarted tool calls stay unanswered [C24]", async () => {
    const world = createVirtualWorld();
    const { graph, open } = wordy();
    const store = memoryStore();
    const handle = run(graph, { store, world, thread: "t", input: { word: "slow" } });
    await world.waitUntilIdle();
    handle.drain("a person wants to look");
    open("slow");
    await handle.result;
    const host = engine({ store, graphs: [graph], world });
    await host.start();
    await advanceClock(world, 5_000);
    expect(await statuses(store)).toEqual(["t paused"]);
    expect((await resume(graph, { store, world, thread: "t" }).result).status).toBe("done");
    const sources = [];
    for await (const { source } of getHistory(graph, { store, thread: "t" })) sources.push(source);
    expect(sources).toEqual(["step", "step", "input"]);
    await host.stop();
  });
});
