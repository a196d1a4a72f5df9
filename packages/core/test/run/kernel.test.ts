/** The kernel runs machines as pure functions and agrees with XState's own live actor about everything that is visible. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AnyEventObject,
  type AnyStateMachine,
  assign,
  cancel,
  createActor,
  createMachine,
  fromPromise,
  raise,
} from "xstate";
import { getShortestPaths, getSimplePaths } from "xstate/graph";
import * as z from "zod";
import { toolCallMachine } from "../../src/compile/tool-call-machine.ts";
import {
  defineGraph,
  defineState,
  END,
  type Graph,
  goto,
  gotos,
  isStatewrightError,
  join,
  route,
  START,
  sends,
  task,
} from "../../src/index.ts";
import { createKernel, createTableKernel, type Effect, type Kernel, type Snapshot } from "../../src/run/kernel.ts";

// A machine as data: small trees of states whose transitions point anywhere.

interface Move {
  readonly target: number | undefined;
  readonly guard: "even" | "small" | undefined;
  readonly acts: readonly ("inc" | "note" | "raise" | "later" | "cancel")[];
  readonly reenter: boolean;
}

interface Branch {
  readonly kind: "compound" | "parallel";
  readonly children: readonly Tree[];
  readonly initial: number;
  readonly onDone: Move | undefined;
}

interface Tree {
  readonly inner: Branch | "atomic" | "final";
  readonly on: { readonly A?: readonly Move[]; readonly B?: readonly Move[]; readonly C?: readonly Move[] };
  readonly always: Move | undefined;
  readonly after: Move | undefined;
  readonly invoke: { readonly onDone: Move | undefined; readonly onError: Move | undefined } | undefined;
  readonly tag: boolean;
}

const maybe = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(value, { nil: undefined, freq: 2 });

const move: fc.Arbitrary<Move> = fc.record({
  target: maybe(fc.nat(30)),
  guard: maybe(fc.constantFrom("even" as const, "small" as const)),
  acts: fc.array(
    fc.constantFrom("inc" as const, "note" as const, "raise" as const, "later" as const, "cancel" as const),
    { maxLength: 3 },
  ),
  reenter: fc.boolean(),
});

const { tree } = fc.letrec<{ tree: Tree; branch: Branch }>((tie) => ({
  branch: fc.record({
    kind: fc.constantFrom("compound" as const, "compound" as const, "parallel" as const),
    children: fc.array(tie("tree"), { minLength: 1, maxLength: 3 }),
    initial: fc.nat(5),
    onDone: maybe(move),
  }),
  tree: fc.record({
    inner: fc.oneof(
      { maxDepth: 2, depthSize: "small" },
      { weight: 4, arbitrary: fc.constant("atomic" as const) },
      { weight: 1, arbitrary: fc.constant("final" as const) },
      { weight: 4, arbitrary: tie("branch") },
    ),
    on: fc.record({
      A: fc.array(move, { maxLength: 2 }),
      B: fc.array(move, { maxLength: 2 }),
      C: fc.array(move, { maxLength: 2 }),
    }),
    always: fc.option(move, { nil: undefined, freq: 5 }),
    after: maybe(move),
    invoke: maybe(fc.record({ onDone: maybe(move), onError: maybe(move) })),
    tag: fc.boolean(),
  }),
}));

const root = fc.record({
  kind: fc.constantFrom("compound" as const, "parallel" as const),
  children: fc.array(tree, { minLength: 2, maxLength: 3 }),
  initial: fc.nat(5),
  onDone: fc.constant(undefined),
});

type Command =
  | { readonly kind: "send"; readonly type: "A" | "B" | "C" }
  | { readonly kind: "fire"; readonly nth: number }
  | { readonly kind: "settle"; readonly nth: number; readonly fails: boolean };

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("send" as const),
      type: fc.constantFrom("A" as const, "B" as const, "C" as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("fire" as const), nth: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("settle" as const), nth: fc.nat(5), fails: fc.boolean() }) },
);

interface Log {
  readonly actions: string[];
  /** Apart from the actions: a live actor puts its timers off to the end of the step. */
  readonly timers: string[];
  readonly starts: string[];
}

interface Counter {
  readonly n: number;
}

/** The machine of a tree; what its actions do is written into `log`. */
function machineOf(top: Branch, log: Log): AnyStateMachine {
  const ids: string[] = [];
  const collectIds = (branch: Branch, path: string): void => {
    for (const [index, child] of branch.children.entries()) {
      const id = `${path}_${index}`;
      ids.push(id);
      if (typeof child.inner === "object") collectIds(child.inner, id);
    }
  };
  collectIds(top, "s");

  const note =
    (name: string) =>
    ({ context, event }: { context: Counter; event: AnyEventObject }) => {
      log.actions.push(`${name} at ${context.n} on ${event.type}`);
    };
  const inc = assign<Counter, AnyEventObject, undefined, AnyEventObject, never>({ n: ({ context }) => context.n + 1 });
  const guards = {
    even: ({ context }: { context: Counter }) => context.n % 2 === 0,
    small: ({ context }: { context: Counter }) => context.n < 6,
  };
  // Raised events go one way, A to B to C, so that no macrostep is endless.
  const raised: Readonly<Record<string, unknown[]>> = { A: [raise({ type: "B" })], B: [raise({ type: "C" })] };
  const actions = (given: Move, on: string): unknown[] => {
    const made: Readonly<Record<Move["acts"][number], unknown[]>> = {
      inc: [inc],
      note: [note(`move on ${on}`)],
      // A live actor keeps both timers of one id: the first is cancelled here, so that there is one.
      later: [cancel("later"), raise({ type: "C" }, { id: "later", delay: 7 })],
      cancel: [cancel("later")],
      raise: raised[on] ?? [],
    };
    return given.acts.flatMap((act) => made[act]);
  };
  const transition = (given: Move, on: string) => ({
    ...(given.target === undefined ? {} : { target: `#${ids[given.target % ids.length]}`, reenter: given.reenter }),
    ...(given.guard === undefined ? {} : { guard: guards[given.guard] }),
    actions: actions(given, on),
  });
  /** Eventless transitions count, and stop when the count is no longer small. */
  const eventless = (given: Move) => ({
    ...transition(given, "always"),
    guard: guards.small,
    actions: [inc, ...actions(given, "always")],
  });

  const stateOf = (node: Tree, id: string): object => {
    if (node.inner === "final") return { id, type: "final", entry: note(`enter ${id}`) };
    const on = Object.fromEntries(
      Object.entries(node.on).map(([type, moves]) => [type, moves?.map((each) => transition(each, type)) ?? []]),
    );
    return {
      id,
      on,
      entry: note(`enter ${id}`),
      exit: note(`exit ${id}`),
      ...(node.tag ? { tags: [`tag ${id}`] } : {}),
      ...(node.always === undefined ? {} : { always: eventless(node.always) }),
      ...(node.after === undefined ? {} : { after: { 10: transition(node.after, "after") } }),
      ...(node.invoke === undefined
        ? {}
        : {
            invoke: {
              id: `call ${id}`,
              src: "work",
              input: ({ context }: { context: Counter }) => ({ id, n: context.n }),
              ...(node.invoke.onDone === undefined ? {} : { onDone: transition(node.invoke.onDone, "done") }),
              ...(node.invoke.onError === undefined ? {} : { onError: transition(node.invoke.onError, "error") }),
            },
          }),
      ...(node.inner === "atomic" ? {} : branchOf(node.inner, id)),
    };
  };
  const branchOf = (branch: Branch, id: string): object => ({
    ...(branch.kind === "parallel" ? { type: "parallel" } : { initial: `c${branch.initial % branch.children.length}` }),
    states: Object.fromEntries(branch.children.map((child, index) => [`c${index}`, stateOf(child, `${id}_${index}`)])),
    ...(branch.onDone === undefined ? {} : { onDone: transition(branch.onDone, "inner done") }),
  });

  const config = { id: "random", context: { n: 0 }, options: { maxIterations: 100 }, ...branchOf(top, "s") };
  const work = fromPromise<never, { id: string; n: number }>(({ input }) => {
    log.starts.push(`${input.id} with ${input.n}`);
    return new Promise<never>(() => undefined);
  });
  return (createMachine(config as never) as AnyStateMachine).provide({ actors: { work } } as never);
}

/** A live actor, with a clock that only remembers. */
function liveActor(top: Branch) {
  const log: Log = { actions: [], timers: [], starts: [] };
  const timers = new Map<number, { readonly fire: () => void; readonly delay: number }>();
  let nextTimer = 0;
  const actor = createActor(machineOf(top, log), {
    clock: {
      setTimeout: (fire: () => void, delay: number) => {
        log.timers.push(`after ${delay}`);
        timers.set(nextTimer, { fire, delay });
        return nextTimer++;
      },
      clearTimeout: (id: number) => {
        timers.delete(id);
      },
    } as never,
  });
  actor.subscribe({ error: () => undefined });
  actor.start();
  return {
    log,
    pending: () => [...timers.values()].map(({ delay }) => delay),
    fire: (nth: number) => {
      const [id, timer] = [...timers][nth] ?? [];
      if (id !== undefined) timers.delete(id);
      timer?.fire();
    },
    send: (event: AnyEventObject) => actor.send(event),
    seen: () => {
      const { value, context, status, tags } = actor.getSnapshot() as Snapshot;
      return { value, context, status, tags: [...tags].sort() };
    },
  };
}

/** The kernel, with what its effects have left. */
function pureRun(top: Branch) {
  const log: Log = { actions: [], timers: [], starts: [] };
  const kernel = createKernel(machineOf(top, log));
  const timers = new Map<string, { readonly event: AnyEventObject; readonly delayMs: number }>();
  const children = new Set<string>();
  let [snapshot, effects] = kernel.initial();
  perform(effects);

  function perform(done: readonly Effect[]): void {
    const stopped = (id: string, from: number): boolean =>
      done.slice(from).some((effect) => effect.kind === "stop" && effect.id === id);
    for (const [index, effect] of done.entries()) {
      if (effect.kind === "action") effect.run?.();
      if (effect.kind === "timer") {
        log.timers.push(`after ${effect.delayMs}`);
        timers.delete(effect.id);
        timers.set(effect.id, effect);
      }
      if (effect.kind === "cancel") timers.delete(effect.id);
      if (effect.kind === "stop") children.delete(effect.id);
      // What is stopped in the step that starts it is never started.
      if (effect.kind === "start" && !stopped(effect.id, index)) {
        const { id, n } = effect.input as { id: string; n: number };
        log.starts.push(`${id} with ${n}`);
        children.add(effect.id);
      }
    }
  }

  return {
    log,
    pending: () => [...timers.values()].map(({ delayMs }) => delayMs),
    timerEvent: (nth: number) => {
      const [id, timer] = [...timers][nth] ?? [];
      if (id !== undefined) timers.delete(id);
      return timer?.event;
    },
    child: (nth: number) => [...children][nth % Math.max(1, children.size)],
    send: (event: AnyEventObject): "taken" | "refused" | "failed" => {
      try {
        [snapshot, effects] = kernel.step(snapshot, event);
      } catch (error) {
        if (isStatewrightError(error, "event_refused")) return "refused";
        if (isStatewrightError(error, "machine_failed")) return "failed";
        throw error;
      }
      perform(effects);
      return "taken";
    },
    seen: () => {
      const { value, context, status, tags } = snapshot;
      return { value, context, status, tags: [...tags].sort() };
    },
    /** Stand in the same place, as after a restart. */
    restored: () => kernel.restore(snapshot.value, snapshot.context),
    current: () => snapshot,
    kernel,
  };
}

function asEvent(given: Command, pure: ReturnType<typeof pureRun>): AnyEventObject | undefined {
  if (given.kind === "send") return { type: given.type };
  if (given.kind === "fire") return pure.timerEvent(given.nth);
  const child = pure.child(given.nth);
  if (child === undefined) return undefined;
  return given.fails
    ? { type: `xstate.error.actor.${child}`, error: new Error("broken"), actorId: child }
    : { type: `xstate.done.actor.${child}`, output: 1, actorId: child };
}

describe("the kernel and a live actor", () => {
  test("agree on value, context, tags and the order of effects, for any small machine", () => {
    const counts = { taken: 0, refused: 0, failed: 0 };
    let timersSet = 0;
    let started = 0;
    fc.assert(
      fc.property(root, fc.array(command, { maxLength: 12 }), (top, commands) => {
        const live = liveActor(top);
        if (live.seen().status === "error") {
          expect(refusal(() => pureRun(top)).code).toBe("machine_failed");
          return;
        }
        const pure = pureRun(top);
        const compare = (): void => {
          expect(pure.seen()).toEqual(live.seen());
          expect(pure.log.actions).toEqual(live.log.actions);
          expect(pure.log.timers).toEqual(live.log.timers);
          expect(pure.log.starts).toEqual(live.log.starts);
          if (pure.seen().status === "active") expect(pure.pending()).toEqual(live.pending());
        };
        compare();
        for (const given of commands) {
          if (pure.seen().status !== "active") break;
          const event = asEvent(given, pure);
          if (event === undefined) continue;
          if (given.kind === "fire") live.fire(given.nth);
          else live.send(event);
          const outcome = pure.send(event);
          counts[outcome] += 1;
          // A machine that loops for ever has failed in both.
          if (outcome === "failed") return expect(live.seen().status).toBe("error");
          compare();
        }
        timersSet += pure.log.timers.length;
        started += pure.log.starts.length;
      }),
      { numRuns: 400, seed: 8 },
    );
    // The machines are not so poor that nothing was compared.
    for (const seen of [counts.taken, counts.refused, timersSet, started]) expect(seen).toBeGreaterThan(100);
  });

  test("a machine that is restored from its value and context goes on as the one that was never stopped", () => {
    fc.assert(
      fc.property(root, fc.array(fc.constantFrom("A", "B", "C"), { maxLength: 6 }), (top, types) => {
        if (liveActor(top).seen().status === "error") return;
        const pure = pureRun(top);
        for (const type of types) {
          if (pure.seen().status !== "active") return;
          const again = take(pure.kernel, pure.restored(), { type });
          const straight = take(pure.kernel, pure.current(), { type });
          expect(again).toEqual(straight);
          pure.send({ type });
        }
      }),
      { numRuns: 150, seed: 9 },
    );
  });
});

function take(kernel: Kernel, from: Snapshot, event: AnyEventObject): unknown {
  try {
    const [{ value, context, status, tags }, effects] = kernel.step(from, event);
    return {
      value,
      context,
      status,
      tags: [...tags].sort(),
      effects: effects.map((effect) => (effect.kind === "action" ? effect.name : effect)),
    };
  } catch (error) {
    return isStatewrightError(error) ? error.code : error;
  }
}

describe("what a kernel refuses", () => {
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

  test("E54 an event that the state does not accept is refused with those that it does", () => {
    const kernel = createKernel(door);
    const [closed] = kernel.initial();
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

  test("E54 a finished machine accepts nothing", () => {
    const kernel = createKernel(door);
    const gone = ["unlock", "open", "remove"].reduce((at, type) => kernel.step(at, { type })[0], kernel.initial()[0]);
    expect(gone.status).toBe("done");
    expect(kernel.accepts(gone)).toEqual([]);
    expect(refusal(() => kernel.step(gone, { type: "open" })).message).toContain("It has finished and accepts none");
  });

  const boom = (): never => {
    throw new Error("boom");
  };
  const broken: Readonly<Record<string, AnyStateMachine>> = {
    "a guard": createMachine({ initial: "a", states: { a: { on: { go: { guard: boom, target: "b" } } }, b: {} } }),
    "an expression of assign": createMachine({
      context: { n: 0 },
      initial: "a",
      states: { a: { on: { go: { target: "b", actions: assign({ n: boom }) } } }, b: {} },
    }),
    "the input of an actor": createMachine({
      initial: "a",
      states: { a: { on: { go: "b" } }, b: { invoke: { src: fromPromise(async () => 1), input: boom } } },
    }),
    "an eventless guard": createMachine({
      initial: "a",
      states: { a: { on: { go: "b" } }, b: { always: { guard: boom, target: "a" } } },
    }),
    "a delay": createMachine({
      initial: "a",
      states: { a: { on: { go: "b" } }, b: { entry: raise({ type: "go" }, { delay: boom }) } },
    }),
  };
  for (const [name, machine] of Object.entries(broken)) {
    test(`${name} that throws fails the step, and nothing reaches the process`, async () => {
      const kernel = createKernel(machine);
      const strays: unknown[] = [];
      const stray = (error: unknown): void => {
        strays.push(error);
      };
      process.on("uncaughtException", stray);
      try {
        const [a] = kernel.initial();
        expect(refusal(() => kernel.step(a, { type: "go" }))).toMatchObject({
          code: "machine_failed",
          cause: { message: expect.stringContaining("boom") },
        });
        expect(a.value).toBe("a");
        await new Promise((resolve) => setTimeout(resolve, 5));
      } finally {
        process.off("uncaughtException", stray);
      }
      expect(strays).toEqual([]);
    });
  }

  test("an action that throws does so where its effect is run, not in the step", () => {
    const kernel = createKernel(createMachine({ initial: "a", states: { a: { on: { go: { actions: boom } } } } }));
    const [, [effect]] = kernel.step(kernel.initial()[0], { type: "go" });
    expect(effect?.kind).toBe("action");
    expect(() => effect?.kind === "action" && effect.run?.()).toThrow("boom");
  });

  test("a first state that cannot be entered is an error at once", () => {
    const machine = createMachine({ context: { n: 0 }, entry: assign({ n: boom }) });
    expect(refusal(() => createKernel(machine).initial()).code).toBe("machine_failed");
  });

  test("a loop of eventless transitions ends with an error that names it", () => {
    const machine = createMachine({
      id: "loop",
      initial: "a",
      states: { a: { on: { go: "b" } }, b: { always: "c" }, c: { always: "b" } },
    });
    const kernel = createKernel(machine);
    expect(refusal(() => kernel.step(kernel.initial()[0], { type: "go" }))).toMatchObject({
      code: "machine_failed",
      message: expect.stringContaining('"loop"'),
    });
  });

  test("a failed step leaves the kernel usable", () => {
    const kernel = createKernel(door);
    const [closed] = kernel.initial();
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

// Graphs of core: one node at a time, and parallel work with sends, a join and commands.

const sequential = defineGraph({ name: "line", state: defineState({ n: z.number().default(0) }) })
  .nodes({ one: () => undefined, two: () => undefined, ask: () => goto("one") })
  .edges({ [START]: "one", one: route(["two", END], () => END), two: "ask", ask: gotos("one", "two") });

const parallel = defineGraph({ name: "fan", state: defineState({ items: z.array(z.string()).default([]) }) })
  .nodes({
    plan: () => undefined,
    each: task(z.string(), () => undefined),
    meet: () => undefined,
  })
  .edges({
    [START]: "plan",
    plan: sends("each", (state) => state.items, { otherwise: "meet" }),
    each: join("meet"),
    meet: END,
  });

/** Everything that may happen to a graph's machine, whether the state takes it or not. */
function eventsOf(graph: Graph): readonly AnyEventObject[] {
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

/** Walk every state that either kernel reaches, and compare every event in it, twice: computed and remembered. */
function compareEverywhere(
  machine: AnyStateMachine,
  events: readonly AnyEventObject[],
  key: (event: AnyEventObject) => string,
): number {
  const plain = createKernel(machine);
  const table = createTableKernel(machine, key);
  const queue: (readonly [Snapshot, Snapshot])[] = [[plain.initial()[0], table.initial()[0]]];
  const seen = new Set<string>();
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const mark = JSON.stringify([next[0].value, next[0].status]);
    if (seen.has(mark)) continue;
    seen.add(mark);
    for (const event of events) {
      const expected = take(plain, next[0], event);
      expect(take(table, next[1], event)).toEqual(expected);
      expect(take(table, next[1], event)).toEqual(expected);
      if (typeof expected === "string") continue;
      queue.push([plain.step(next[0], event)[0], table.step(next[1], event)[0]]);
    }
  }
  return seen.size;
}

describe("a kernel that remembers its transitions", () => {
  test("equals the plain kernel in every state of a sequential graph", () => {
    expect(compareEverywhere(sequential.machine, eventsOf(sequential as Graph), graphKey)).toBeGreaterThan(10);
  });

  test("equals the plain kernel in every state of a parallel graph", () => {
    expect(compareEverywhere(parallel.machine, eventsOf(parallel as Graph), graphKey)).toBeGreaterThan(100);
  });

  test("equals the plain kernel in every state of a tool call", () => {
    const types = toolCallMachine.events.map((type: string) => ({ type }));
    expect(compareEverywhere(toolCallMachine, types, (event) => event.type)).toBe(16);
  });

  test("stays within its limit and stays right", () => {
    const small = createTableKernel(sequential.machine, graphKey, 2);
    const plain = createKernel(sequential.machine);
    let [one, other] = [small.initial()[0], plain.initial()[0]];
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

describe("the machine of a tool call", () => {
  const paths = getSimplePaths(toolCallMachine);
  const ends = paths.filter((path) => path.state.status === "done");

  test("K3 every path ends answered, after the hooks that run after a call", () => {
    expect(ends.length).toBeGreaterThan(20);
    for (const path of ends) {
      const states = path.steps.map((step) => step.state.value);
      expect(path.state.value).toBe("answered");
      expect(states).toContain("after");
    }
  });

  test("K3 the paths cover every edge", () => {
    const walked = new Set(
      paths.flatMap((path) =>
        path.steps.map((step, index) => `${String(path.steps[index - 1]?.state.value)} on ${step.event.type}`),
      ),
    );
    const edges = Object.values(toolCallMachine.states).flatMap((state) =>
      state.ownEvents.map((type: string) => `${state.key} on ${type}`),
    );
    expect(edges.length).toBeGreaterThan(35);
    // Simple paths never come back, so that the one loop is looked at by itself.
    expect(edges.filter((edge) => !walked.has(edge))).toEqual(["retryWait on call.retried"]);
    const kernel = createKernel(toolCallMachine);
    expect(kernel.step(kernel.restore("retryWait"), { type: "call.retried" })[0].value).toBe("executing");
  });

  test("K3 the kernel walks every path that xstate/graph finds", () => {
    const kernel = createTableKernel(toolCallMachine, (event) => event.type);
    for (const path of getShortestPaths(toolCallMachine)) {
      const events = path.steps.map((step) => step.event).filter((event) => event.type !== "xstate.init");
      const end = events.reduce((at, event) => kernel.step(at, event)[0], kernel.initial()[0]);
      expect(end.value).toEqual(path.state.value);
    }
  });
});
