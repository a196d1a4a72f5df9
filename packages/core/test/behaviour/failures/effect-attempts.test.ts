/** Attempts and processes of effects in the journal: crashes, retries, failures and stops. */
import { expect, test } from "vitest";
import { fromPromise, setup } from "xstate";
import * as z from "zod";
import {
  defineGraph,
  defineState,
  defineTool,
  durableMachine,
  type EffectClass,
  END,
  type MemoryStore,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  ToolError,
} from "../../../src/index.ts";
import type { EffectRow } from "../../../src/store.ts";
import {
  answerWith,
  createActingModel,
  createAskingGraph,
  createUserInput,
  failWith,
} from "../../support/acting-model.ts";
import { ignoreResult } from "../../support/failure.ts";
import { call, createToolLoop } from "../../support/tool-loop.ts";
import { createVirtualWorld, type VirtualWorld } from "../../support/virtual-world.ts";

const start = 1_000_000;
const hour = 3_600_000;

/** Reads what a journal row says about its attempts. */
async function readAttempts(store: Store, key: string, branch = "main") {
  const rows = (await store.effects("t", branch)).filter((row) => row.key === key);
  expect(rows).toHaveLength(1);
  const { state, attempts, processes, attemptLog, startedAt, endedAt } = rows[0] as EffectRow;
  return { state, attempts, processes, attemptLog, startedAt, endedAt };
}

/** Graph of one step that hangs in its first runs and then takes 40 ms. */
function createHangingGraph(
  world: VirtualWorld,
  { hangs, effect }: { readonly hangs: number; readonly effect?: EffectClass },
) {
  let begun = 0;
  return defineGraph({ name: "transfer", state: defineState({ note: z.string() }) })
    .nodes({
      send: async (_state, { step }) => ({
        note: await step(
          "send",
          () => {
            begun += 1;
            if (begun <= hangs) return new Promise<string>(() => undefined);
            return new Promise<string>((resolve) => void world.schedule.after(40, () => resolve("sent")));
          },
          effect === undefined ? {} : { effect },
        ),
      }),
    })
    .edges({ [START]: "send", send: END });
}

/** Runs until the world is idle and kills the process. */
async function runAndDie(graph: ReturnType<typeof createHangingGraph>, world: VirtualWorld): Promise<MemoryStore> {
  const store = memoryStore();
  ignoreResult(run(graph, { store, world, thread: "t", input: { note: "" } }).result);
  await world.waitUntilIdle();
  store.crash();
  await world.advance(hour);
  return store.peer();
}

test("a step killed in flight and run again has two attempts in two processes, and a duration without the outage [FX19, ND8]", async () => {
  const world = createVirtualWorld(start);
  const graph = createHangingGraph(world, { hangs: 1 });
  const store = await runAndDie(graph, world);
  const handle = resume(graph, { store, world, thread: "t" });
  await world.advance(40);
  expect((await handle.result).status).toBe("done");
  expect(await readAttempts(store, "send")).toEqual({
    state: "ok",
    attempts: 2,
    processes: 2,
    attemptLog: [
      { startedAt: start, error: "process_died" },
      { startedAt: start + hour, endedAt: start + hour + 40 },
    ],
    startedAt: start + hour,
    endedAt: start + hour + 40,
  });
});

test("a step killed twice in flight counts three processes, each death with its start [ND8]", async () => {
  const world = createVirtualWorld(start);
  const graph = createHangingGraph(world, { hangs: 2 });
  const store = await runAndDie(graph, world);
  ignoreResult(resume(graph, { store, world, thread: "t" }).result);
  await world.waitUntilIdle();
  store.crash();
  await world.advance(hour);
  const third = store.peer();
  const handle = resume(graph, { store: third, world, thread: "t" });
  await world.advance(40);
  await handle.result;
  expect(await readAttempts(third, "send")).toMatchObject({
    attempts: 3,
    processes: 3,
    attemptLog: [
      { startedAt: start, error: "process_died" },
      { startedAt: start + hour, error: "process_died" },
      { startedAt: start + 2 * hour, endedAt: start + 2 * hour + 40 },
    ],
  });
});

test("a once step in doubt shows the death of its owner before a person has answered [ND8]", async () => {
  const world = createVirtualWorld(start);
  const graph = createHangingGraph(world, { hangs: 1, effect: "once" });
  const store = await runAndDie(graph, world);
  const waiting = await resume(graph, { store, world, thread: "t" }).result;
  expect(waiting.status).toBe("waiting");
  const died = { startedAt: start, error: "process_died" };
  const inDoubt = { state: "started", attempts: 1, attemptLog: [died] };
  expect(await readAttempts(store, "send")).toEqual({
    ...inDoubt,
    processes: undefined,
    startedAt: start,
    endedAt: undefined,
  });
  const handle = resume(graph, { store, world, thread: "t", answers: { in_doubt: { happened: false } } });
  await world.advance(40);
  await handle.result;
  expect(await readAttempts(store, "send")).toMatchObject({
    state: "ok",
    attempts: 2,
    processes: 2,
    attemptLog: [died, { startedAt: start + hour, endedAt: start + hour + 40 }],
  });
});

test("a once step that a person reports as done keeps one attempt in one process [ND8]", async () => {
  const world = createVirtualWorld(start);
  const graph = createHangingGraph(world, { hangs: 1, effect: "once" });
  const store = await runAndDie(graph, world);
  await resume(graph, { store, world, thread: "t" }).result;
  const answers = { in_doubt: { happened: true, value: "sent" } };
  expect((await resume(graph, { store, world, thread: "t", answers }).result).state.note).toBe("sent");
  expect(await readAttempts(store, "send")).toMatchObject({
    state: "ok",
    attempts: 1,
    processes: undefined,
    attemptLog: [{ startedAt: start, error: "process_died" }],
  });
});

test("an effect with one attempt in one process has neither a list of attempts nor a count of processes [ND8]", async () => {
  const world = createVirtualWorld(start);
  const store = memoryStore();
  const handle = run(createHangingGraph(world, { hangs: 0 }), { store, world, thread: "t", input: { note: "" } });
  await world.advance(40);
  await handle.result;
  const [row] = await store.effects("t", "main");
  expect(row).toMatchObject({ state: "ok", attempts: 1, startedAt: start, endedAt: start + 40 });
  expect(Object.keys(row ?? {})).not.toContain("attemptLog");
  expect(Object.keys(row ?? {})).not.toContain("processes");
});

test("the retries of a tool are attempts in one process, each with the kind of its failure [ND8]", async () => {
  const world = createVirtualWorld(start);
  let begun = 0;
  const tool = defineTool({
    name: "act",
    description: "Act.",
    input: z.object({}),
    effect: "idempotent",
    retry: { attempts: 3, initialMs: 100, factor: 1, jitter: 0 },
    run: () => {
      begun += 1;
      throw new ToolError(begun === 3 ? "denied" : "unavailable", "try again");
    },
  });
  const loop = createToolLoop({ tools: [tool], turns: [[call("act", {}, "c1")], ["ok"]], world });
  const { result } = loop.start();
  await world.advance(1_000);
  await result;
  expect(await readAttempts(loop.store as Store, "c1")).toEqual({
    state: "ok",
    attempts: 3,
    processes: undefined,
    attemptLog: [
      { startedAt: start, endedAt: start, error: "unavailable" },
      { startedAt: start + 100, endedAt: start + 100, error: "unavailable" },
      { startedAt: start + 200, endedAt: start + 200, error: "denied" },
    ],
    startedAt: start,
    endedAt: start + 200,
  });
});

test("a tool call killed in its second attempt keeps the failure of the first one and counts another process [ND8]", async () => {
  const world = createVirtualWorld(start);
  let begun = 0;
  const tool = defineTool({
    name: "act",
    description: "Act.",
    input: z.object({}),
    effect: "idempotent",
    retry: { attempts: 2, initialMs: 100, jitter: 0 },
    run: () => {
      begun += 1;
      if (begun === 1) throw new ToolError("unavailable", "try again");
      return begun === 2 ? new Promise<string>(() => undefined) : "done";
    },
  });
  const store = memoryStore();
  const loop = createToolLoop({ tools: [tool], turns: [[call("act", {}, "c1")], ["ok"]], world, store });
  ignoreResult(loop.start().result);
  await world.advance(100);
  store.crash();
  await world.advance(hour);
  const other = store.peer();
  await loop.again({}, { store: other }).result;
  expect(await readAttempts(other, "c1")).toMatchObject({
    attempts: 3,
    processes: 2,
    attemptLog: [
      { startedAt: start, endedAt: start, error: "unavailable" },
      { startedAt: start + 100, error: "process_died" },
      { startedAt: start + 100 + hour, endedAt: start + 100 + hour },
    ],
  });
});

test("the requests of a model call are attempts with their model and the kind of their failure [ND8]", async () => {
  const world = createVirtualWorld(start);
  const store = memoryStore();
  const first = createActingModel("first", failWith({ kind: "rate_limit" }), failWith({ kind: "overloaded" }));
  const second = createActingModel("second", answerWith("Hello"));
  const graph = createAskingGraph(first, { retry: { attempts: 2, initialMs: 100, jitter: 0 }, fallback: [second] });
  const { result } = run(graph, { world, store, thread: "t", input: createUserInput("Hello") });
  await world.advance(1_000);
  await result;
  expect(await readAttempts(store, "model")).toMatchObject({
    attempts: 3,
    attemptLog: [
      { startedAt: start, endedAt: start, error: "rate_limit", model: "first" },
      { startedAt: start + 100, endedAt: start + 100, error: "overloaded", model: "first" },
      { startedAt: start + 100, endedAt: start + 100 },
    ],
  });
});

test("a step that fails and runs again after a resume has two attempts in one process [ND8]", async () => {
  const world = createVirtualWorld(start);
  const store = memoryStore();
  let begun = 0;
  const graph = defineGraph({ name: "flaky", state: defineState({ note: z.string() }) })
    .nodes({
      act: async (_state, { step }) => ({
        note: await step("act", () => {
          begun += 1;
          if (begun === 1) throw new Error("the port is closed");
          return "done";
        }),
      }),
    })
    .edges({ [START]: "act", act: END });
  await expect(run(graph, { store, world, thread: "t", input: { note: "" } }).result).rejects.toThrow(
    "the port is closed",
  );
  await world.advance(hour);
  await resume(graph, { store, world, thread: "t" }).result;
  expect(await readAttempts(store, "act")).toMatchObject({
    attempts: 2,
    processes: undefined,
    attemptLog: [
      { startedAt: start, endedAt: start, error: "error" },
      { startedAt: start + hour, endedAt: start + hour },
    ],
    startedAt: start + hour,
  });
});

test("a once node started again after the death of its owner names both starts [ND8]", async () => {
  const world = createVirtualWorld(start);
  let begun = 0;
  const graph = defineGraph({ name: "charge", state: defineState({ note: z.string() }) })
    .nodes({
      pay: {
        effect: "once",
        run: () => {
          begun += 1;
          return begun === 1 ? new Promise<{ note: string }>(() => undefined) : { note: "paid" };
        },
      },
    })
    .edges({ [START]: "pay", pay: END });
  const first = memoryStore();
  ignoreResult(run(graph, { store: first, world, thread: "t", input: { note: "" } }).result);
  await world.waitUntilIdle();
  first.crash();
  await world.advance(hour);
  const store = first.peer();
  expect((await resume(graph, { store, world, thread: "t" }).result).status).toBe("waiting");
  const answers = { in_doubt: { happened: false } };
  expect((await resume(graph, { store, world, thread: "t", answers }).result).state.note).toBe("paid");
  expect(await readAttempts(store, "")).toMatchObject({
    state: "ok",
    attempts: 2,
    processes: 2,
    attemptLog: [
      { startedAt: start, error: "process_died" },
      { startedAt: start + hour, endedAt: start + hour },
    ],
  });
});

test("a promise of a durable machine that is killed in flight counts the processes that began it [ND8]", async () => {
  const world = createVirtualWorld(start);
  let begun = 0;
  const machine = setup({
    actors: {
      fetch: fromPromise<string>(async () => {
        begun += 1;
        return begun === 1 ? new Promise<string>(() => undefined) : "fetched";
      }),
    },
  }).createMachine({
    id: "fetcher",
    initial: "fetching",
    states: { fetching: { invoke: { id: "fetch", src: "fetch", onDone: "done" } }, done: { type: "final" } },
  });
  const fetcher = durableMachine(machine, { version: 1, effects: { fetch: "idempotent" } });
  const first = memoryStore();
  ignoreResult(run(fetcher, { store: first, world, thread: "t" }).result);
  await world.waitUntilIdle();
  first.crash();
  await world.advance(hour);
  const store = first.peer();
  expect((await resume(fetcher, { store, world, thread: "t" }).result).status).toBe("done");
  const rows = (await store.effects("t", "main")).filter(({ key, state }) => key === "fetch" && state === "ok");
  expect(rows.map(({ attempts, processes, attemptLog }) => ({ attempts, processes, attemptLog }))).toEqual([
    {
      attempts: 2,
      processes: 2,
      attemptLog: [
        { startedAt: start, error: "process_died" },
        { startedAt: start + hour, endedAt: start + hour },
      ],
    },
  ]);
});
