/**
 * Random machines (nested and parallel states, guards, raised events, delays, invoked and spawned actors): the kernel
 * and a live XState actor receive the same events. Independent of vitest, so that a plain process can run it too.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  type AnyEventObject,
  type AnyStateMachine,
  assign,
  cancel,
  createActor,
  createMachine,
  fromPromise,
  raise,
  spawnChild,
  stopChild,
} from "xstate";
import { isStatewrightError } from "../../src/index.ts";
import { createKernel, type Effect, type Kernel, type Snapshot } from "../../src/run/kernel/kernel.ts";

// A machine as data: a small tree of states with arbitrary transitions.

interface Move {
  readonly target: number | undefined;
  readonly guard: "even" | "small" | undefined;
  readonly acts: readonly ("inc" | "note" | "raise" | "later" | "cancel" | "spawn" | "stop")[];
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

const createOptional = <Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | undefined> =>
  fc.option(value, { nil: undefined, freq: 2 });

const move: fc.Arbitrary<Move> = fc.record({
  target: createOptional(fc.nat(30)),
  guard: createOptional(fc.constantFrom("even" as const, "small" as const)),
  acts: fc.array(
    fc.constantFrom(
      "inc" as const,
      "note" as const,
      "raise" as const,
      "later" as const,
      "cancel" as const,
      "spawn" as const,
      "stop" as const,
    ),
    { maxLength: 3 },
  ),
  reenter: fc.boolean(),
});

const { tree } = fc.letrec<{ tree: Tree; branch: Branch }>((tie) => ({
  branch: fc.record({
    kind: fc.constantFrom("compound" as const, "compound" as const, "parallel" as const),
    children: fc.array(tie("tree"), { minLength: 1, maxLength: 3 }),
    initial: fc.nat(5),
    onDone: createOptional(move),
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
    after: createOptional(move),
    invoke: createOptional(fc.record({ onDone: createOptional(move), onError: createOptional(move) })),
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
  /** Sends are separate from actions: a live actor schedules its timers at the end of the step. */
  readonly timers: string[];
  readonly starts: string[];
}

interface Counter {
  readonly n: number;
}

/** Creates the machine of a tree; its actions write into `log`. */
function createRandomMachine(top: Branch, log: Log): AnyStateMachine {
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
  // Raised events have one direction, A to B to C, so that every macrostep ends.
  const raised: Readonly<Record<string, unknown[]>> = { A: [raise({ type: "B" })], B: [raise({ type: "C" })] };
  const actions = (given: Move, on: string): unknown[] => {
    const made: Readonly<Record<Move["acts"][number], unknown[]>> = {
      inc: [inc],
      note: [note(`move on ${on}`)],
      // A live actor keeps both timers of one id: this cancels the first one, so that only one exists.
      later: [cancel("later"), raise({ type: "C" }, { id: "later", delay: 7 })],
      cancel: [cancel("later")],
      // A live actor drops an actor whose id is reused without a stop: this stops the first one.
      spawn: [stopChild("spawned"), spawnChild("work", { id: "spawned", input: { id: "spawned", n: 0 } })],
      stop: [stopChild("spawned")],
      raise: raised[on] ?? [],
    };
    return given.acts.flatMap((act) => made[act]);
  };
  const transition = (given: Move, on: string) => ({
    ...(given.target === undefined ? {} : { target: `#${ids[given.target % ids.length]}`, reenter: given.reenter }),
    ...(given.guard === undefined ? {} : { guard: guards[given.guard] }),
    actions: actions(given, on),
  });
  /** Eventless transitions increase a counter and stop at its limit. */
  const createEventlessTransition = (given: Move) => ({
    ...transition(given, "always"),
    guard: guards.small,
    actions: [inc, ...actions(given, "always")],
  });

  const getState = (node: Tree, id: string): object => {
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
      ...(node.always === undefined ? {} : { always: createEventlessTransition(node.always) }),
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
      ...(node.inner === "atomic" ? {} : getBranch(node.inner, id)),
    };
  };
  const getBranch = (branch: Branch, id: string): object => ({
    ...(branch.kind === "parallel" ? { type: "parallel" } : { initial: `c${branch.initial % branch.children.length}` }),
    states: Object.fromEntries(branch.children.map((child, index) => [`c${index}`, getState(child, `${id}_${index}`)])),
    ...(branch.onDone === undefined ? {} : { onDone: transition(branch.onDone, "inner done") }),
  });

  const config = { id: "random", context: { n: 0 }, options: { maxIterations: 100 }, ...getBranch(top, "s") };
  const work = fromPromise<never, { id: string; n: number }>(({ input }) => {
    log.starts.push(`${input.id} with ${input.n}`);
    return new Promise<never>(() => undefined);
  });
  return (createMachine(config as never) as AnyStateMachine).provide({ actors: { work } } as never);
}

/** Starts a live actor with a clock that only records its timers. */
function liveActor(top: Branch) {
  const log: Log = { actions: [], timers: [], starts: [] };
  const timers = new Map<number, { readonly fire: () => void; readonly delay: number }>();
  let nextTimer = 0;
  const actor = createActor(createRandomMachine(top, log), {
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

/** Drives the kernel and records its effects. */
function pureRun(top: Branch) {
  const log: Log = { actions: [], timers: [], starts: [] };
  const kernel = createKernel(createRandomMachine(top, log));
  const timers = new Map<string, { readonly event: AnyEventObject; readonly delayMs: number }>();
  const children = new Set<string>();
  let [snapshot, effects] = kernel.enter();
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
      // An actor that is stopped in its first step is never started.
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
    /** Restores the machine in its current state, as after a restart. */
    restored: () => kernel.restore(snapshot.value, snapshot.context, [...children]),
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

/** Counts of observed features, to prove that the random machines are rich enough. */
export interface Compared {
  readonly outcomes: { taken: number; refused: number; failed: number };
  timers: number;
  readonly starts: { invoked: number; spawned: number };
}

/** Sends random events to random machines in the kernel and in a live actor; throws at the first difference. */
export function compareWithActors(parameters: { readonly numRuns: number; readonly seed: number }): Compared {
  const seen: Compared = {
    outcomes: { taken: 0, refused: 0, failed: 0 },
    timers: 0,
    starts: { invoked: 0, spawned: 0 },
  };
  fc.assert(
    fc.property(root, fc.array(command, { maxLength: 12 }), (top, commands) => {
      const live = liveActor(top);
      if (live.seen().status === "error") {
        assert.throws(
          () => pureRun(top),
          (error) => isStatewrightError(error, "machine_failed"),
        );
        return;
      }
      const pure = pureRun(top);
      const compare = (): void => {
        assert.deepEqual(pure.seen(), live.seen());
        assert.deepEqual(pure.log, live.log);
        if (pure.seen().status === "active") assert.deepEqual(pure.pending(), live.pending());
      };
      compare();
      for (const given of commands) {
        if (pure.seen().status !== "active") break;
        const event = asEvent(given, pure);
        if (event === undefined) continue;
        if (given.kind === "fire") live.fire(given.nth);
        else live.send(event);
        const outcome = pure.send(event);
        seen.outcomes[outcome] += 1;
        // A machine with an endless loop fails in both.
        if (outcome === "failed") {
          assert.equal(live.seen().status, "error");
          return;
        }
        compare();
      }
      seen.timers += pure.log.timers.length;
      for (const start of pure.log.starts) seen.starts[start.startsWith("spawned") ? "spawned" : "invoked"] += 1;
    }),
    parameters,
  );
  return seen;
}

/** Restores random machines in every state: they continue as without a stop. Returns the number of compared steps. */
export function compareRestored(parameters: { readonly numRuns: number; readonly seed: number }): number {
  let steps = 0;
  fc.assert(
    fc.property(root, fc.array(fc.constantFrom("A", "B", "C"), { maxLength: 6 }), (top, types) => {
      if (liveActor(top).seen().status === "error") return;
      const pure = pureRun(top);
      for (const type of types) {
        if (pure.seen().status !== "active") return;
        assert.deepEqual(
          getStepResult(pure.kernel, pure.restored(), { type }),
          getStepResult(pure.kernel, pure.current(), { type }),
        );
        pure.send({ type });
        steps += 1;
      }
    }),
    parameters,
  );
  return steps;
}

/** Result of a step as data: next snapshot and effects, or the error code. */
export function getStepResult(kernel: Kernel, from: Snapshot, event: AnyEventObject): unknown {
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
