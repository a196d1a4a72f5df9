/** Runs of dead processes: listed, continued by another process, and set aside after repeated crashes. */
import { expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  durableMachine,
  END,
  env,
  getState,
  type MemoryStore,
  memoryStore,
  recover,
  resume,
  run,
  START,
} from "../../../src/index.ts";
import { listRuns, listThreads } from "../../../src/inspect.ts";
import { collectEvents, getFailure, getOnlyEvent, ignoreResult } from "../../support/failure.ts";
import { gate } from "../../support/tool-loop.ts";
import { expectNothingUnhandled } from "../../support/unhandled-errors.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

expectNothingUnhandled();

const Log = defineState({ log: channel.list(z.string()) });

/** Graph of two steps; for each word the second step never ends in its first process. */
function createCrashingGraph(deaths: (word: string) => number) {
  const died = new Map<string, number>();
  const effects: string[] = [];
  const Words = defineState({ word: z.string().default("a"), log: channel.list(z.string()) });
  const graph = defineGraph({ name: "deadly", state: Words, interrupts: { ok: z.boolean() } })
    .nodes({
      first: async ({ word }, { step }) => {
        await step("effect", () => effects.push(`${word} 1`), { effect: "once" });
        return { log: ["first"] };
      },
      second: async ({ word }, { interrupt }) => {
        const before = died.get(word) ?? 0;
        died.set(word, before + 1);
        if (word === "ask") await interrupt("ok");
        if (before < deaths(word)) await gate().passed;
        return { log: ["second"] };
      },
    })
    .edges({ [START]: "first", first: "second", second: END });
  return { graph, effects, died };
}

/** Lets the runs of a process advance as far as possible and kills the process; returns the next process. */
async function die(world: ReturnType<typeof createVirtualWorld>, store: MemoryStore): Promise<MemoryStore> {
  await world.waitUntilIdle();
  store.crash();
  return store.peer();
}

test("recover lists the runs of a dead process and continues them without repeating a completed effect [E35]", async () => {
  const world = createVirtualWorld();
  const { graph, effects } = createCrashingGraph(() => 1);
  const first = memoryStore();
  for (const word of ["a", "b", "ask"])
    ignoreResult(run(graph, { store: first, world, thread: word, input: { word } }).result);
  await run(graph, { store: first, world, thread: "done", input: { word: "ask" } }).result;
  const other = first.peer();
  expect((await listRuns(other, { status: "running" })).map(({ thread }) => thread)).toEqual(["b", "a"]);
  expect(await recover({ store: other, graphs: [graph], world })).toEqual([]);
  const next = await die(world, first);
  expect((await listRuns(next, { status: "crashed" })).map(({ thread }) => thread)).toEqual(["b", "a"]);
  expect((await listRuns(next, { status: ["waiting", "failed"] })).map(({ thread }) => thread)).toEqual([
    "done",
    "ask",
  ]);
  expect((await listThreads(next, { status: "crashed" })).map(({ id }) => id).sort()).toEqual(["a", "b"]);
  const handles = await recover({ store: next, graphs: [graph], world });
  expect(handles.map(({ thread }) => thread)).toEqual(["a", "b"]);
  const events = handles.map(collectEvents);
  for (const { result } of handles)
    expect(await result).toMatchObject({ status: "done", state: { log: ["first", "second"] } });
  for (const each of events) expect(getOnlyEvent(each, "run.started")).toMatchObject([{ recovered: true, attempt: 2 }]);
  expect(effects.sort()).toEqual(["a 1", "ask 1", "ask 1", "b 1"]);
  expect(await listRuns(next, { status: "crashed" })).toEqual([]);
  expect(await recover({ store: next, graphs: [graph], world })).toEqual([]);
});

test("a run row has attempt, timing and cause for every status of a run [E35]", async () => {
  const world = createVirtualWorld();
  const { graph } = createCrashingGraph((word) => (word === "ask" ? 0 : 1));
  const store = memoryStore();
  const start = (word: string, more = {}) => run(graph, { store, world, thread: word, input: { word }, ...more });
  const row = async (thread: string) => (await listRuns(store, { thread }))[0];
  const running = start("a", { metadata: { who: "ann" } });
  await world.waitUntilIdle();
  expect(await row("a")).toEqual({
    cursor: expect.any(String),
    position: expect.any(Number),
    id: running.id,
    thread: "a",
    branch: "main",
    graph: "deadly",
    version: 1,
    status: "running",
    attempt: 1,
    startedAt: 1_000_000,
    metadata: { who: "ann" },
  });
  await world.advance(50);
  const queued = start("b", { thread: "a", onBusy: "enqueue" });
  await world.waitUntilIdle();
  expect(await row("a")).toMatchObject({ id: queued.id, status: "queued", queuedAt: 1_000_050, input: '{"word":"b"}' });
  running.drain("a deploy");
  running.cancel("enough");
  expect(await running.result).toMatchObject({ status: "cancelled" });
  ignoreResult(queued.result);
  await world.waitUntilIdle();
  const [restarted, ended] = await listRuns(store, { thread: "a" });
  expect(ended).toMatchObject({ status: "cancelled", reason: "enough", endedAt: 1_000_050 });
  expect(restarted).toMatchObject({ status: "running", startedAt: 1_000_050, queuedAt: 1_000_050, attempt: 1 });
  expect(restarted).not.toHaveProperty("input");
  await start("ask").result;
  expect(await row("ask")).toMatchObject({ status: "waiting", attempt: 1 });
  const paused = await start("p", { breakpoints: { before: ["second"] } }).result;
  expect(paused.status).toBe("paused");
  expect(await row("p")).toMatchObject({ status: "paused", error: { code: "breakpoint" } });
  await resume(graph, { store, world, thread: "ask", answers: { ok: true } }).result;
  expect(await row("ask")).toMatchObject({ status: "done", attempt: 2, endedAt: 1_000_050 });
});

test("a run that crashes repeatedly without a new checkpoint is parked, other runs continue, and a resume continues the parked run [F23]", async () => {
  const world = createVirtualWorld();
  const { graph, died } = createCrashingGraph((word) => (word === "poison" ? 100 : word === "slow" ? 3 : 0));
  let store = memoryStore();
  for (const word of ["poison", "slow"])
    ignoreResult(run(graph, { store, world, thread: word, input: { word } }).result);
  const processes: string[][] = [];
  for (let life = 0; life < 6; life++) {
    store = await die(world, store);
    const handles = await recover({ store, graphs: [graph], world, parkAfter: 4 });
    for (const { result } of handles) ignoreResult(result);
    await world.waitUntilIdle();
    processes.push(
      (await listRuns(store)).map(({ thread, status, attempt }) => `${thread} ${status} ${attempt}`).sort(),
    );
  }
  expect(processes).toEqual([
    ["poison running 2", "slow running 2"],
    ["poison running 3", "slow running 3"],
    ["poison running 4", "slow done 4"],
    ["poison parked 5", "slow done 4"],
    ["poison parked 5", "slow done 4"],
    ["poison parked 5", "slow done 4"],
  ]);
  expect(died.get("poison")).toBe(4);
  const [parked] = await listRuns(store, { status: "parked" });
  expect(parked).toMatchObject({
    thread: "poison",
    error: { code: "parked", details: { deaths: 4 } },
    recovered: { count: 4 },
  });
  expect((await getFailure(run(graph, { store, world, thread: "poison" }).result)).code).toBe("thread_busy");
  died.set("poison", 100);
  const resumed = await resume(graph, { store, world, thread: "poison" }).result;
  expect(resumed).toMatchObject({ status: "done", state: { log: ["first", "second"] } });
  expect((await listRuns(store, { status: "parked" })).length).toBe(0);
});

test("crashes are counted since the last checkpoint: a run that progresses each time is never parked [F23]", async () => {
  const world = createVirtualWorld();
  let alive = 0;
  const node = async ({ log }: { readonly log: readonly string[] }) => {
    if (log.length > alive) await gate().passed;
    return { log: ["x"] };
  };
  const graph = defineGraph({ name: "slowly", state: Log })
    .nodes({ one: node, two: node, three: node })
    .edges({ [START]: "one", one: "two", two: "three", three: END });
  let store = memoryStore();
  ignoreResult(run(graph, { store, world, thread: "t" }).result);
  for (const steps of [1, 2]) {
    store = await die(world, store);
    alive = steps;
    for (const { result } of await recover({ store, graphs: [graph], world, parkAfter: 2 })) ignoreResult(result);
  }
  await world.waitUntilIdle();
  expect(await listRuns(store)).toMatchObject([{ status: "done", attempt: 3 }]);
});

test("the timers of a parked run are removed, and a resume arms them again [F23]", async () => {
  const world = createVirtualWorld();
  const machine = durableMachine(
    setup({ actors: { idle: fromPromise(() => new Promise(() => undefined)) } }).createMachine({
      id: "poison",
      initial: "quiet",
      states: { quiet: { invoke: { src: "idle" }, after: { 1000000: "over" } }, over: { type: "final" } },
    }),
    { version: 1, effects: { idle: "pure" } },
  );
  let store = memoryStore();
  ignoreResult(run(machine, { store, world, thread: "t" }).result);
  for (let life = 0; life < 2; life++) {
    store = await die(world, store);
    expect(await store.timers()).toHaveLength(1);
    for (const { result } of await recover({ store, graphs: [machine], world, parkAfter: 2 })) ignoreResult(result);
    await world.waitUntilIdle();
  }
  expect(await listRuns(store)).toMatchObject([{ status: "parked" }]);
  expect(await store.timers()).toEqual([]);
  const resumed = resume(machine, { store, world, thread: "t" });
  await world.waitUntilIdle();
  expect(await store.timers()).toHaveLength(1);
  await world.advance(1_000_000);
  expect((await resumed.result).status).toBe("done");
});

test("recover passes context and secrets for each run, and skips and logs runs without them", async () => {
  const world = createVirtualWorld();
  const Who = defineContext({ customer: z.string() });
  let dying = true;
  const graph = defineGraph({ name: "served", state: Log, context: Who })
    .nodes({
      work: async (_state, { context }) => {
        if (dying) await gate().passed;
        return { log: [context.customer] };
      },
    })
    .edges({ [START]: "work", work: END });
  const other = defineGraph({ name: "other", state: Log })
    .nodes({ work: async () => (dying ? gate().passed : undefined) })
    .edges({ [START]: "work", work: END });
  const first = memoryStore();
  for (const who of ["ann", "bob"])
    ignoreResult(
      run(graph, { store: first, world, thread: who, context: { customer: who }, metadata: { who } }).result,
    );
  ignoreResult(run(other, { store: first, world, thread: "o" }).result);
  ignoreResult(run(graph, { store: first, world, thread: "eve", context: { customer: "eve" } }).result);
  const next = await die(world, first);
  dying = false;
  const handles = await recover({
    store: next,
    graphs: [graph],
    world,
    secrets: env([]),
    context: ({ metadata }) => {
      if (metadata === undefined) throw new Error("who is it?");
      return { customer: metadata["who"] };
    },
  });
  const ends = await Promise.all(handles.map(({ result }) => result));
  expect(ends.map(({ state }) => state)).toEqual([{ log: ["ann"] }, { log: ["bob"] }]);
  expect(world.lines.map(({ message, fields }) => [message, fields?.["thread"]])).toEqual([
    ["a run is skipped: its graph is not served here", "o"],
    ["a run is skipped: the context callback threw", "eve"],
  ]);
  expect((await listRuns(next, { status: "crashed" })).map(({ thread }) => thread)).toEqual(["eve", "o"]);
});

test("recover starts queued inputs of an idle thread, and ends a run that a queued input replaces", async () => {
  const world = createVirtualWorld();
  const { graph, died } = createCrashingGraph(() => 1);
  const first = memoryStore();
  const start = (thread: string, word: string, more = {}) =>
    run(graph, { store: first, world, thread, input: { word }, ...more });
  for (const thread of ["a", "b"]) ignoreResult(start(thread, thread).result);
  await world.waitUntilIdle();
  ignoreResult(start("a", "behind", { onBusy: "enqueue" }).result);
  ignoreResult(start("b", "instead", { onBusy: "cancel" }).result);
  const next = await die(world, first);
  for (const word of ["behind", "instead"]) died.set(word, 1);
  const handles = await recover({ store: next, graphs: [graph], world });
  expect((await Promise.all(handles.map(({ result }) => result))).map(({ status }) => status)).toEqual([
    "done",
    "done",
  ]);
  await world.waitUntilIdle();
  const rows = (thread: string) => listRuns(next, { thread }).then((found) => found.map(({ status }) => status));
  expect([await rows("a"), await rows("b")]).toEqual([
    ["done", "done"],
    ["done", "cancelled"],
  ]);
  expect((await getState(graph, { store: next, thread: "b" })).state.log).toEqual(["first", "first", "second"]);
});

test("two processes may recover at the same moment, and an unawaited failure of a recovered run is handled", async () => {
  const world = createVirtualWorld();
  const logged: string[] = [];
  let broken = false;
  const graph = defineGraph({ name: "broken", state: Log })
    .nodes({
      first: async () => {
        if (!broken) await gate().passed;
        throw new Error("no");
      },
    })
    .edges({ [START]: "first", first: END });
  const first = memoryStore();
  ignoreResult(run(graph, { store: first, world, thread: "t" }).result);
  await world.waitUntilIdle();
  first.crash();
  broken = true;
  const log = (_level: string, text: string): number => logged.push(text);
  const begin = () => recover({ store: first.peer(), graphs: [graph], world: { ...world, log } });
  const handles = (await Promise.all([begin(), begin()])).flat();
  await world.waitUntilIdle();
  await world.waitUntilIdle();
  expect(handles).toHaveLength(2);
  expect(logged).toEqual(["a run failed"]);
  expect((await listRuns(first.peer())).map(({ status }) => status)).toEqual(["failed"]);
});

test("invalid recover options are refused before any run starts", async () => {
  const store = memoryStore();
  const graphs = [createCrashingGraph(() => 0).graph];
  for (const wrong of [{ graphs: undefined }, { graphs: [{}] }, { parkAfter: 0 }, { tools: [] }])
    expect((await getFailure(recover({ store, graphs, ...wrong } as never))).code).toBe("invalid_option");
  expect((await getFailure(recover({ graphs } as never))).code).toBe("missing_store");
});
