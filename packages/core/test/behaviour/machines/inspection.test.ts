/** Inspection: a standard XState inspector gets the same events from a run as from XState actors. */
import { createInspector } from "@statelyai/inspect";
import { describe, expect, expectTypeOf, test } from "vitest";
import {
  type AnyStateMachine,
  assign,
  createActor,
  fromCallback,
  fromPromise,
  type InspectionEvent,
  type Observer,
  sendTo,
  setup,
  toPromise,
} from "xstate";
import * as z from "zod";
import {
  channel,
  defineGraph,
  defineState,
  defineTool,
  durableMachine,
  END,
  type Graph,
  type Inspector,
  join,
  memoryStore,
  type RunHandle,
  resume,
  route,
  run,
  START,
  subgraph,
} from "../../../src/index.ts";
import { createDeferred } from "../../support/failure.ts";
import { formatEvent, groupByActor } from "../../support/inspection-lines.ts";
import { call, createToolLoop } from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const returnNothing = () => undefined;

const line = defineGraph({ name: "line", state: defineState({ n: z.number().default(0) }) })
  .nodes({ count: (state) => ({ n: state.n + 1 }), check: returnNothing })
  .edges({ [START]: "count", count: "check", check: route(["count", END], (state) => (state.n < 2 ? "count" : END)) });

const fan = defineGraph({ name: "fan", state: defineState({ seen: channel.list(z.string()) }) })
  .nodes({ plan: returnNothing, check: returnNothing, meet: returnNothing })
  .edges({ [START]: ["plan", "check"], plan: join("meet"), check: join("meet"), meet: END });

/** Events of the XState actor on the same path; a superstep ends slightly after its last node, as with a store. */
async function recordActorEvents(
  machine: AnyStateMachine,
  path: readonly (readonly string[])[],
): Promise<readonly string[]> {
  const lines: string[] = [];
  const nodes = Object.keys(machine.implementations.actors).map((name) => [name, fromPromise(async () => undefined)]);
  let step = 0;
  let committing = 0;
  const commit = fromCallback(({ sendBack }) => {
    committing += 1;
    if (committing < (path[step]?.length ?? 0)) return;
    committing = 0;
    step += 1;
    setTimeout(() => sendBack({ type: "step.commit", to: path[step] ?? [] }));
  });
  const provided = machine.provide({ actors: { ...Object.fromEntries(nodes), "step.commit": commit } } as never);
  const actor = createActor(provided, { inspect: (event) => lines.push(formatEvent(event)) });
  actor.start();
  actor.send({ type: "step.commit", to: path[0] ?? [] });
  await toPromise(actor);
  return lines;
}

async function listInspected(start: (inspect: Inspector) => RunHandle<unknown>): Promise<readonly string[]> {
  const lines: string[] = [];
  await start((event) => lines.push(formatEvent(event))).result;
  return lines;
}

describe("inspection events", () => {
  test("an inspector of a sequential graph gets the same events, order and fields as from an XState actor [E56]", async () => {
    const lines = await listInspected((inspect) => run(line, { inspect }));
    expect(lines.length).toBeGreaterThan(60);
    expect(lines).toEqual(await recordActorEvents(line.machine, [["count"], ["check"], ["count"], ["check"]]));
  });

  test("an inspector of a parallel graph gets the same events as from an XState actor [E56]", async () => {
    const lines = await listInspected((inspect) => run(fan, { inspect }));
    expect(lines).toEqual(await recordActorEvents(fan.machine, [["plan", "check"], ["meet"]]));
  });

  test("an inspector of a durable machine with actions, promises and a timer gets the same events as from an XState actor [E56]", async () => {
    const machine = setup({
      types: { context: {} as { tries: number } },
      actors: {
        fails: fromPromise(async () => Promise.reject(new Error("no"))),
        works: fromPromise(async () => 7),
      },
      actions: { note: returnNothing },
      guards: { again: ({ context }) => context.tries < 2 },
    }).createMachine({
      id: "hand",
      context: { tries: 0 },
      initial: "trying",
      entry: "note",
      states: {
        trying: { invoke: { src: "fails", id: "f", onError: { target: "judging", actions: assign({ tries: 2 }) } } },
        judging: { always: [{ guard: "again", target: "trying" }, { target: "waiting" }], exit: "note" },
        waiting: { after: { 5: "working" } },
        working: { invoke: { src: "works", id: "w", onDone: "done" } },
        done: { type: "final" },
      },
    });
    const world = createVirtualWorld();
    const lines = await listInspected((inspect) => {
      const handle = run(durableMachine(machine, { version: 1 }), { inspect, world, input: {} });
      world.advance(10);
      return handle;
    });
    const theirs: string[] = [];
    const actor = createActor(machine, { inspect: (event) => theirs.push(formatEvent(event)) });
    actor.start();
    await toPromise(actor);
    expect(lines).toEqual(theirs);
  });

  test("an inspector of nested machines gets the same events per machine and in the same order as from an XState actor [E56]", async () => {
    const inner = setup({ actors: { works: fromPromise(async () => 1) } }).createMachine({
      id: "inner",
      initial: "first",
      states: {
        first: { always: "second" },
        second: { invoke: { src: "works", id: "deep", onDone: "end" } },
        end: { type: "final" },
      },
    });
    const machine = setup({ actors: { inner } }).createMachine({
      id: "outer",
      initial: "at",
      states: { at: { invoke: { src: "inner", id: "child", onDone: "end" } }, end: { type: "final" } },
    });
    const lines = await listInspected((inspect) =>
      run(durableMachine(machine, { version: 1 }), { inspect, input: {} }),
    );
    const theirs: string[] = [];
    const actor = createActor(machine, { inspect: (event) => theirs.push(formatEvent(event)) });
    actor.start();
    await toPromise(actor);
    expect(groupByActor(lines)).toEqual(groupByActor(theirs));
  });
});

test("the machine of each tool call is inspected as an actor below its node, from received to answered [E56]", async () => {
  const events: InspectionEvent[] = [];
  const add = defineTool({ name: "add", description: "Adds.", input: z.object({}), run: () => "5" });
  const loop = createToolLoop({
    tools: [add],
    turns: [[call("add", {}, "c1"), call("add", {}, "c2")], ["done"]],
    inspect: (event) => events.push(event),
  });
  await loop.start().result;
  for (const id of ["c1", "c2"]) {
    const mine = events.filter((event) => (event.actorRef as { id?: string }).id === id);
    const values = mine.flatMap((event) =>
      event.type === "@xstate.snapshot" && "value" in event.snapshot ? [event.snapshot.value] : [],
    );
    expect(values).toEqual([
      "received",
      "resolved",
      "validated",
      "admitted",
      "started",
      "before",
      "executing",
      "after",
      "formatted",
      "persisted",
      "answered",
    ]);
    expect(mine[0]).toMatchObject({
      type: "@xstate.actor",
      actorRef: { _parent: { id: "tools", _parent: { id: "desk" } } },
    });
  }
});

test("the machine of an inner graph is inspected as the actor of its node [E56]", async () => {
  const outer = defineGraph({ name: "outer", state: defineState({ n: z.number().default(0) }) })
    .nodes({
      inside: subgraph(line, { input: (state) => ({ n: state.n }), output: (result) => ({ n: result.n }) }),
    })
    .edges({ [START]: "inside", inside: END });
  const events: InspectionEvent[] = [];
  await run(outer as Graph, { inspect: (event) => events.push(event) }).result;
  const made = events.flatMap(({ type, actorRef }) => (type === "@xstate.actor" ? [listIds(actorRef)] : []));
  expect(made).toEqual([
    "outer",
    "outer.inside",
    ...["count", "count.commit", "check", "check.commit"].map((id) => `outer.inside.${id}`),
    ...["count", "count.commit", "check", "check.commit"].map((id) => `outer.inside.${id}`),
    "outer.inside.commit",
  ]);
  const last = events.findLast(
    (event) => event.type === "@xstate.snapshot" && listIds(event.actorRef) === "outer.inside",
  );
  expect(last).toMatchObject({ snapshot: { value: "done", status: "done" } });
});

function listIds(ref: unknown): string {
  const { id, _parent } = ref as { readonly id: string; readonly _parent?: unknown };
  return _parent === undefined ? id : `${listIds(_parent)}.${id}`;
}

test("a resumed run is inspected as a restored actor in its saved state with its active work [E56]", async () => {
  const store = memoryStore();
  const graph = defineGraph({ name: "asks", state: defineState({}), interrupts: { ok: z.boolean() } })
    .nodes({ ask: async (_state, { interrupt }) => void (await interrupt("ok")), after: returnNothing })
    .edges({ [START]: "ask", ask: "after", after: END });
  await run(graph, { store, thread: "t" }).result;
  const lines = await listInspected((inspect) => resume(graph, { store, thread: "t", inspect, answers: { ok: true } }));
  const machine = graph.machine.provide({ actors: { ask: fromPromise(() => new Promise(returnNothing)) } } as never);
  const before = createActor(machine).start();
  before.send({ type: "step.commit", to: ["ask"] });
  const restored: string[] = [];
  createActor(machine, {
    snapshot: before.getPersistedSnapshot(),
    inspect: (event) => restored.push(formatEvent(event)),
  }).start();
  expect(restored.length).toBe(6);
  expect(lines.slice(0, 6)).toEqual(restored);
  expect(lines.at(-1)).toContain('@xstate.snapshot root step.commit done "done"');
});

test("a cancelled run is inspected as an actor that is stopped with its children [E56]", async () => {
  const graph = defineGraph({ name: "hangs", state: defineState({}) })
    .nodes({ hang: () => new Promise<undefined>(returnNothing) })
    .edges({ [START]: "hang", hang: END });
  const lines: string[] = [];
  const handle = run(graph, { inspect: (event) => lines.push(formatEvent(event)) });
  await createVirtualWorld().waitUntilIdle();
  handle.cancel();
  expect((await handle.result).status).toBe("cancelled");
  const theirs: string[] = [];
  const hang = fromPromise(() => new Promise<never>(returnNothing));
  const actor = createActor(graph.machine.provide({ actors: { hang } }), {
    inspect: (event) => theirs.push(formatEvent(event)),
  });
  actor.start();
  actor.send({ type: "step.commit", to: ["hang"] });
  actor.stop();
  expect(lines).toEqual(theirs);
});

test("a resumed durable machine is inspected as a restored actor with its nested machines [E56]", async () => {
  const inner = setup({}).createMachine({
    id: "inner",
    initial: "first",
    states: { first: { always: "second" }, second: { on: { PING: "third" } }, third: { type: "final" } },
  });
  const machine = setup({ actors: { inner } }).createMachine({
    id: "outer",
    initial: "at",
    states: {
      at: {
        invoke: { src: "inner", id: "child", onDone: "end" },
        on: { GO: { actions: sendTo("child", { type: "PING" }) }, STOP: "end" },
      },
      end: { type: "final" },
    },
  });
  const graph = durableMachine(machine, { version: 1 });
  for (const type of ["GO", "STOP"] as const) {
    const store = memoryStore();
    expect((await run(graph, { store, thread: "t", input: {} }).result).status).toBe("waiting");
    const lines = await listInspected((inspect) =>
      resume(graph, { store, thread: "t", inspect, answers: { [type]: true } }),
    );
    const theirs: string[] = [];
    const before = createActor(machine).start();
    const actor = createActor(machine, {
      snapshot: before.getPersistedSnapshot(),
      inspect: (event) => theirs.push(formatEvent(event)),
    });
    actor.start();
    actor.send({ type });
    await toPromise(actor);
    // The engine emits an event sent to a busy actor when it is processed; XState emits it on arrival.
    const taken = (all: readonly string[]) => groupByActor(all.filter((each) => !each.startsWith("@xstate.event")));
    expect(taken(lines)).toEqual(taken(theirs));
    expect(lines.toSorted()).toEqual(theirs.toSorted());
  }
});

test("an inspector gets a transition after its commit and not before [E56]", async () => {
  const events: InspectionEvent[] = [];
  const store = memoryStore();
  const gate = createDeferred();
  let commits = 0;
  const held = {
    ...store,
    commit: (commit: Parameters<typeof store.commit>[0], onCommitted: Parameters<typeof store.commit>[1]) => {
      commits += 1;
      store.commit(commit, (failure) => {
        gate.promise.then(() => onCommitted(failure));
      });
    },
  };
  const handle = run(line, { store: held, thread: "t", inspect: (event) => events.push(event) });
  await createVirtualWorld().waitUntilIdle();
  expect([commits, events.length]).toEqual([1, 0]);
  gate.resolve();
  await handle.result;
  expect(events.length).toBeGreaterThan(60);
});

describe("inspector compatibility", () => {
  test("the Stately inspector accepts every event of a run and knows actors by name, parent and definition [E56]", async () => {
    interface Sent {
      readonly type: string;
      readonly name?: string;
      readonly sessionId: string;
      readonly parentId?: string;
      readonly definition?: string;
      readonly snapshot?: { readonly value?: unknown };
    }
    const sent: Sent[] = [];
    const { inspect } = createInspector({ send: (event) => sent.push(event as Sent) });
    await run(line, { inspect }).result;
    // The inspector reads the events in later event loop turns.
    await new Promise<void>((resolve) => setTimeout(resolve));
    const actors = sent.filter(({ type }) => type === "@xstate.actor");
    const [root, child] = actors;
    expect(root).toMatchObject({ name: "line" });
    expect(JSON.parse(root?.definition ?? "")).toMatchObject({ id: "line", initial: "start" });
    expect(child).toMatchObject({ name: "count", parentId: root?.sessionId });
    const states = sent
      .filter(({ type, sessionId }) => type === "@xstate.snapshot" && sessionId === root?.sessionId)
      .map(({ snapshot }) => snapshot?.value);
    expect(states.slice(0, 3)).toEqual(["start", { count: "executing" }, { count: "committing" }]);
    expect(states.at(-1)).toBe("done");
  });

  test("a run accepts every value that createActor accepts as inspect [E56]", () => {
    expectTypeOf<Observer<InspectionEvent>>().toExtend<Inspector>();
    expectTypeOf<(event: InspectionEvent) => void>().toExtend<Inspector>();
    expectTypeOf<Parameters<Extract<Inspector, (...args: never) => unknown>>[0]>().toEqualTypeOf<InspectionEvent>();
  });

  test("an inspector that throws does not affect the run and is logged", async () => {
    const world = createVirtualWorld();
    const inspect = (): never => {
      throw new Error("broken");
    };
    expect((await run(line, { world, inspect }).result).status).toBe("done");
    expect(world.lines[0]).toMatchObject({ level: "error", message: "the inspector threw" });
  });

  test("an inspector that sends an event to an actor gets an error that the actor is a view", async () => {
    const errors: unknown[] = [];
    const inspect: Inspector = ({ actorRef }) => {
      try {
        actorRef.send({ type: "step.commit", to: [] });
      } catch (error) {
        errors.push(error);
      }
    };
    await run(line, { inspect }).result;
    expect(errors[0]).toMatchObject({
      code: "event_refused",
      message: expect.stringContaining("a read-only view of an actor"),
    });
  });
});
