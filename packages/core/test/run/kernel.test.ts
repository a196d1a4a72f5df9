/** The pure kernel and a live XState actor agree on all observable behaviour. */
import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { type AnyEventObject, type AnyStateMachine, assign, createMachine, fromPromise, raise } from "xstate";
import { getShortestPaths, getSimplePaths } from "xstate/graph";
import * as z from "zod";
import { getToolCallMachine } from "../../src/compile/tool-call-machine.ts";
import {
  commandTargets,
  defineGraph,
  defineState,
  END,
  fanOut,
  type Graph,
  goto,
  inputNode,
  isStatewrightError,
  join,
  route,
  START,
} from "../../src/index.ts";
import { createKernel, createTableKernel, type Snapshot } from "../../src/run/kernel/kernel.ts";
import type { Parity } from "./parity-process.ts";
import { compareRestored, compareWithActors, getStepResult } from "./random-machines.ts";

const toolCallMachine = getToolCallMachine();

describe("kernel and XState actor", () => {
  test("kernel and XState actor agree on value, context, tags and effect order, for random machines", () => {
    const { outcomes, timers, starts } = compareWithActors({ numRuns: 200, seed: 8 });
    // The random machines are rich enough to compare every feature.
    for (const seen of [outcomes.taken, outcomes.refused, timers, starts.invoked, starts.spawned])
      expect(seen).toBeGreaterThan(100);
  });

  test("a machine restored from value and context continues like an uninterrupted machine", () => {
    expect(compareRestored({ numRuns: 150, seed: 9 })).toBeGreaterThan(100);
  });

  test.each(["development", "production"])(
    "kernel and XState actor agree in the %s condition of xstate",
    (condition) => {
      const { stdout, stderr } = spawnSync(
        process.execPath,
        ["--conditions", condition, "test/run/parity-process.ts"],
        {
          encoding: "utf8",
          env: { ...process.env, NODE_OPTIONS: "" },
        },
      );
      expect(stderr).toBe("");
      const { build, taken, restored } = JSON.parse(stdout) as Parity;
      expect(build.includes("development")).toBe(condition === "development");
      expect(Math.min(taken, restored)).toBeGreaterThan(100);
    },
  );
});

describe("kernel refusals", () => {
  const door = createMachine({
    id: "door",
    initial: "closed",
    context: { locked: true },
    states: {
      closed: {
        on: {
          open: { guard: ({ context }) => !context.locked, target: "opened" },
          unlock: { actions: assign({ locked: false }) },
        },
      },
      opened: { on: { close: "closed", remove: "gone" } },
      gone: { type: "final" },
    },
  });

  test("a kernel refuses an event that the state does not accept, with the accepted events [E54]", () => {
    const kernel = createKernel(door);
    const [closed] = kernel.enter();
    expect(kernel.accepts(closed)).toEqual(["open", "unlock"]);
    expect(refusal(() => kernel.step(closed, { type: "close" }))).toMatchObject({
      code: "event_refused",
      details: { value: "closed", event: "close", accepts: ["open", "unlock"] },
      message: expect.stringContaining('It accepts "open", "unlock"'),
    });
    expect(refusal(() => kernel.step(closed, { type: "open" })).code).toBe("event_refused");
    const [unlocked] = kernel.step(closed, { type: "unlock" });
    expect(kernel.step(unlocked, { type: "open" })[0].value).toBe("opened");
  });

  test("a finished machine accepts no event [E54]", () => {
    const kernel = createKernel(door);
    const gone = ["unlock", "open", "remove"].reduce((at, type) => kernel.step(at, { type })[0], kernel.enter()[0]);
    expect(gone.status).toBe("done");
    expect(kernel.accepts(gone)).toEqual([]);
    expect(refusal(() => kernel.step(gone, { type: "open" })).message).toContain(
      "It has finished and accepts no event",
    );
  });

  const throwBoom = (): never => {
    throw new Error("boom");
  };
  const broken: Readonly<Record<string, AnyStateMachine>> = {
    "a guard": createMachine({ initial: "a", states: { a: { on: { go: { guard: throwBoom, target: "b" } } }, b: {} } }),
    "an expression of assign": createMachine({
      context: { n: 0 },
      initial: "a",
      states: { a: { on: { go: { target: "b", actions: assign({ n: throwBoom }) } } }, b: {} },
    }),
    "the input of an actor": createMachine({
      initial: "a",
      states: { a: { on: { go: "b" } }, b: { invoke: { src: fromPromise(async () => 1), input: throwBoom } } },
    }),
    "an eventless guard": createMachine({
      initial: "a",
      states: { a: { on: { go: "b" } }, b: { always: { guard: throwBoom, target: "a" } } },
    }),
    "a delay": createMachine({
      initial: "a",
      states: { a: { on: { go: "b" } }, b: { entry: raise({ type: "go" }, { delay: throwBoom }) } },
    }),
  };
  for (const [name, machine] of Object.entries(broken)) {
    test(`${name} that throws fails the step of the kernel and causes no uncaught exception`, async () => {
      const kernel = createKernel(machine);
      const strays: unknown[] = [];
      const collectStrayError = (error: unknown): void => {
        strays.push(error);
      };
      process.on("uncaughtException", collectStrayError);
      try {
        const [a] = kernel.enter();
        expect(refusal(() => kernel.step(a, { type: "go" }))).toMatchObject({
          code: "machine_failed",
          cause: { message: expect.stringContaining("boom") },
        });
        expect(a.value).toBe("a");
        await new Promise((resolve) => setTimeout(resolve, 5));
      } finally {
        process.off("uncaughtException", collectStrayError);
      }
      expect(strays).toEqual([]);
    });
  }

  test("an action that throws does so when its effect is run, and not in the kernel step", () => {
    const kernel = createKernel(createMachine({ initial: "a", states: { a: { on: { go: { actions: throwBoom } } } } }));
    const [, [effect]] = kernel.step(kernel.enter()[0], { type: "go" });
    expect(effect?.kind).toBe("action");
    expect(() => effect?.kind === "action" && effect.run?.()).toThrow("boom");
  });

  test("an initial state that cannot be entered is an error at once", () => {
    const machine = createMachine({ context: { n: 0 }, entry: assign({ n: throwBoom }) });
    expect(refusal(() => createKernel(machine).enter()).code).toBe("machine_failed");
  });

  test("an endless loop of eventless transitions fails with an error that names the loop", () => {
    const machine = createMachine({
      id: "loop",
      initial: "a",
      states: { a: { on: { go: "b" } }, b: { always: "c" }, c: { always: "b" } },
    });
    const kernel = createKernel(machine);
    expect(refusal(() => kernel.step(kernel.enter()[0], { type: "go" }))).toMatchObject({
      code: "machine_failed",
      message: expect.stringContaining('"loop"'),
    });
  });

  test("a failed step leaves the kernel usable", () => {
    const kernel = createKernel(door);
    const [closed] = kernel.enter();
    refusal(() => kernel.step(closed, { type: "close" }));
    const [open] = kernel.step(kernel.step(closed, { type: "unlock" })[0], { type: "open" });
    expect(open.value).toBe("opened");
  });
});

function refusal(work: () => unknown) {
  try {
    work();
  } catch (error) {
    if (isStatewrightError(error)) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

// Graphs of core: sequential nodes, and parallel nodes with sends, a join and commands.

const sequential = defineGraph({ name: "line", state: defineState({ n: z.number().default(0) }) })
  .nodes({ one: () => undefined, two: () => undefined, ask: () => goto("one") })
  .edges({ [START]: "one", one: route(["two", END], () => END), two: "ask", ask: commandTargets("one", "two") });

const parallel = defineGraph({ name: "fan", state: defineState({ items: z.array(z.string()).default([]) }) })
  .nodes({
    plan: () => undefined,
    each: inputNode(z.string(), () => undefined),
    meet: () => undefined,
  })
  .edges({
    [START]: "plan",
    plan: fanOut("each", (state) => state.items, { otherwise: "meet" }),
    each: join("meet"),
    meet: END,
  });

/** Possible events of a graph's machine, accepted or refused. */
function listEvents(graph: Graph): readonly AnyEventObject[] {
  const nodes = [...graph.nodes.keys()];
  return [
    { type: "step.commit", to: [] },
    ...nodes.map((node) => ({ type: "step.commit", to: [node] })),
    ...nodes.flatMap((one, index) =>
      nodes.slice(index + 1).map((other) => ({ type: "step.commit", to: [one, other] })),
    ),
    ...nodes.map((node) => ({ type: `xstate.done.actor.${node}` })),
    ...nodes.flatMap((node) => [
      { type: "task.interrupted", node },
      { type: "task.failed", node },
    ]),
    { type: "run.resumed" },
  ];
}

const graphKey = (event: AnyEventObject): string =>
  `${event.type} ${Array.isArray(event["to"]) ? event["to"].join(" ") : ""} ${String(event["node"] ?? "")}`;

/** Walks every state that either kernel reaches, and compares every event twice: computed and memoized. */
function compareEverywhere(
  machine: AnyStateMachine,
  events: readonly AnyEventObject[],
  key: (event: AnyEventObject) => string,
): number {
  const plain = createKernel(machine);
  const table = createTableKernel(machine, key);
  const queue: (readonly [Snapshot, Snapshot])[] = [[plain.enter()[0], table.enter()[0]]];
  const seen = new Set<string>();
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const mark = JSON.stringify([next[0].value, next[0].status]);
    if (seen.has(mark)) continue;
    seen.add(mark);
    for (const event of events) {
      const expected = getStepResult(plain, next[0], event);
      expect(getStepResult(table, next[1], event)).toEqual(expected);
      expect(getStepResult(table, next[1], event)).toEqual(expected);
      if (typeof expected === "string") continue;
      queue.push([plain.step(next[0], event)[0], table.step(next[1], event)[0]]);
    }
  }
  return seen.size;
}

describe("table kernel", () => {
  test("a table kernel starts with the same state, effects and trail as the plain kernel", () => {
    for (const machine of [sequential.machine, parallel.machine, toolCallMachine]) {
      const [snapshot, effects, trail] = createTableKernel(machine, graphKey).enter();
      const [plain, plainEffects, plainTrail] = createKernel(machine).enter();
      expect(snapshot.value).toEqual(plain.value);
      expect(snapshot.tags).toEqual(plain.tags);
      expect(snapshot.status).toBe(plain.status);
      expect(effects).toEqual(plainEffects);
      expect(trail.guards).toEqual(plainTrail.guards);
      expect(trail.steps.map(({ kind }) => kind)).toEqual(plainTrail.steps.map(({ kind }) => kind));
    }
  });

  test("a table kernel enters states with entry actions as XState does", () => {
    const machine = createMachine({
      initial: "a",
      states: { a: { entry: "greet", invoke: { src: "work", id: "work" } } },
    }).provide({ actions: { greet: () => undefined }, actors: { work: fromPromise(async () => 1) } });
    const kinds = createTableKernel(machine, ({ type }) => type)
      .enter()[1]
      .map(({ kind }) => kind);
    expect(kinds).toEqual(["action", "start"]);
  });

  test("a table kernel leaves the guards of the given machine unchanged", () => {
    const machine = parallel.machine;
    const before = { ...machine.implementations.guards };
    const kernel = createTableKernel(machine, graphKey);
    kernel.step(kernel.enter()[0], { type: "step.commit", to: [] });
    expect(machine.implementations.guards).toEqual(before);
  });

  test("a table kernel equals the plain kernel in every state of a sequential graph", () => {
    expect(compareEverywhere(sequential.machine, listEvents(sequential as Graph), graphKey)).toBeGreaterThan(10);
  });

  test("a table kernel equals the plain kernel in every state of a parallel graph", () => {
    expect(compareEverywhere(parallel.machine, listEvents(parallel as Graph), graphKey)).toBeGreaterThan(100);
  });

  test("a table kernel equals the plain kernel in every state of a tool call", () => {
    const types = toolCallMachine.events.map((type: string) => ({ type }));
    expect(compareEverywhere(toolCallMachine, types, (event) => event.type)).toBe(16);
  });

  test("a table kernel stays correct within its cache limit", () => {
    const small = createTableKernel(sequential.machine, graphKey, 2);
    const plain = createKernel(sequential.machine);
    let [one, other] = [small.enter()[0], plain.enter()[0]];
    for (let round = 0; round < 5; round++) {
      for (const event of [
        { type: "step.commit", to: ["one"] },
        { type: "xstate.done.actor.one" },
        { type: "step.commit", to: ["two"] },
        { type: "xstate.done.actor.two" },
        { type: "step.commit", to: ["ask"] },
        { type: "xstate.done.actor.ask" },
      ]) {
        [one, other] = [small.step(one, event)[0], plain.step(other, event)[0]];
        expect(one.value).toEqual(other.value);
      }
    }
  });
});

describe("tool call machine", () => {
  const paths = getSimplePaths(toolCallMachine);
  const ends = paths.filter((path) => path.state.status === "done");

  test("every path of the tool call machine ends in answered, after the after hooks [K3]", () => {
    expect(ends.length).toBeGreaterThan(20);
    for (const path of ends) {
      const states = path.steps.map((step) => step.state.value);
      expect(path.state.value).toBe("answered");
      expect(states).toContain("after");
    }
  });

  test("the paths of the tool call machine cover every edge [K3]", () => {
    const walked = new Set(
      paths.flatMap((path) =>
        path.steps.map((step, index) => `${String(path.steps[index - 1]?.state.value)} on ${step.event.type}`),
      ),
    );
    const edges = Object.values(toolCallMachine.states).flatMap((state) =>
      state.ownEvents.map((type: string) => `${state.key} on ${type}`),
    );
    expect(edges.length).toBeGreaterThan(25);
    // Simple paths have no cycle, so the one loop is checked separately.
    expect(edges.filter((edge) => !walked.has(edge))).toEqual(["retryWait on call.retried"]);
    const kernel = createKernel(toolCallMachine);
    expect(kernel.step(kernel.restore("retryWait"), { type: "call.retried" })[0].value).toBe("executing");
  });

  test("the kernel follows every path of the tool call machine that xstate/graph finds [K3]", () => {
    const kernel = createTableKernel(toolCallMachine, (event) => event.type);
    for (const path of getShortestPaths(toolCallMachine)) {
      const events = path.steps.map((step) => step.event).filter((event) => event.type !== "xstate.init");
      const end = events.reduce((at, event) => kernel.step(at, event)[0], kernel.enter()[0]);
      expect(end.value).toEqual(path.state.value);
    }
  });
});
