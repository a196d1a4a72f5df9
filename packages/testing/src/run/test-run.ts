/** `testRun`: a run that stops where a test wants to look, dies when it says so, and goes on in a new process. */
import {
  type Answers,
  applyDelta,
  type Codec,
  freshId,
  type Graph,
  type GraphMachine,
  type GraphTypes,
  getState,
  type Json,
  type LetterInput,
  type Model,
  memoryStore,
  type OpenInterrupt,
  plainCodec,
  type ResumeOptions,
  type RunHandle,
  type RunOptions,
  type RunResult,
  resume,
  run,
  type Store,
  steer,
  systemWorld,
  type World,
} from "@statewright/core";
import { eventsAt, tagsAt } from "../node/machine-snapshot.ts";
import { isIn, isResting, type StateName } from "../node/state-names.ts";
import type { Order } from "../order/every-order.ts";
import { effectsIn, pathText, type Trace, type TracedEffect, type TraceEntry } from "../trace/trace.ts";
import { type VirtualClock, virtualClock } from "../virtual-clock.ts";
import { account } from "./explain-run.ts";
import { instrument, isDrawn } from "./instrument.ts";
import { beginLife, type Life } from "./process-run.ts";
import { storePlace } from "./reopenable-store.ts";
import { type Heard, hearing, sayingAgain } from "./replay-models.ts";
import { type StartingPoint, startAt } from "./start-checkpoint.ts";
import { tellOf } from "./trace-context.ts";

/** What a test run takes besides what the graph's own run takes. */
export interface TestOptions<Input> {
  readonly input?: Input;
  /** Answers in place of every model of the graph. */
  readonly model?: Model;
  /** `virtual` (the default) skips every wait; `real` waits; or a virtual clock of your own. */
  readonly clock?: "virtual" | "real" | VirtualClock;
  /** What chance starts from, with a virtual clock. Default 1. */
  readonly seed?: number;
  /** Where the thread is kept: a memory store by default. To crash over another store, give a function that opens it. */
  readonly store?: Store | (() => Store);
  /** Begin before this node with this state, as if the graph had come there, instead of with an input. */
  readonly startAt?: StartingPoint;
  /** The order in which what runs side by side completes, from `everyOrder`. */
  readonly order?: Order;
}

/** The input that a graph's tests give: an agent's are the words that a person says. */
export type TestInput<Types extends GraphTypes, Words> = unknown extends Words
  ? Types["input"]
  : Words | Types["input"];

/** What `testRun` takes. */
export type TestRunOptions<Types extends GraphTypes, Words> = Omit<RunOptions<Types>, "store" | "world" | "input"> &
  TestOptions<TestInput<Types, Words>>;

/** A graph, or an agent, which says how words become its input. */
export type Testable<Types extends GraphTypes, Words> = Graph<Types> & {
  readonly inputOf?: (words: Words, world: World) => object;
};

/** What makes the graph anew for each process: then a crash drops also what its functions keep in variables. */
export type MakesGraph<Types extends GraphTypes, Words> = () => Testable<Types, Words>;

/** Where a test run stands: held between two moments, at rest, or dead. */
export type TestStatus =
  | "ready"
  | "held"
  | "done"
  | "waiting"
  | "paused"
  | "failed"
  | "cancelled"
  | "crashed"
  | "queued";

/** Where a run is to stop: a state, a tag of its states, or whatever holds of it. */
export type Target<Types extends GraphTypes> =
  | StateName<Types["nodes"]>
  | { readonly tag: string }
  | ((t: TestRun<Types>) => boolean);

/** When words that are sent to a run are heard: at the next boundary, or where it would end otherwise. */
export interface SendOptions {
  readonly kind?: "steer" | "followUp";
}

/** An event for a machine that was drawn by hand. */
export interface SentEvent {
  readonly type: string;
  readonly [part: string]: unknown;
}

/** The run of a graph in the hands of a test, for helpers that take or give one: `TestRunOf<typeof shop>`. */
export type TestRunOf<OfGraph> = OfGraph extends Graph<infer Types> ? TestRun<Types> : never;

/** A run in the hands of a test. Nothing of it happens by itself: each function below lets it go on and holds it again. */
export interface TestRun<Types extends GraphTypes = GraphTypes> {
  readonly status: TestStatus;
  /** The state after the last superstep that was saved. */
  readonly state: Types["state"];
  /** Where the machine stands. */
  readonly value: Json;
  /** The machine's own snapshot there: `matches`, `hasTag`, `can`. */
  readonly snapshot: ReturnType<GraphMachine["resolveState"]>;
  /** The tags of the states that it stands in. */
  readonly tags: readonly string[];
  /** What it takes from outside: the keys of its open questions; of a machine drawn by hand its events. */
  readonly accepts: readonly string[];
  /** The types of the events that its machine takes where it stands. */
  readonly events: readonly string[];
  readonly interrupts: readonly OpenInterrupt[];
  /** The error that failed the run. */
  readonly error: unknown;
  readonly trace: Trace<Types>;
  /** The steps and tool calls whose bodies were entered, over all lives. */
  readonly effects: readonly TracedEffect[];
  readonly thread: string;
  /** The clock, the log and chance of the run; a virtual clock can be moved. */
  readonly world: World;
  /**
   * Go on until the run is in a state, and hold it there: nothing new begins, and what is under way is not saved yet. In
   * `interrupted`, `failed` and `done` the run rests, and everything is saved. Throws when it comes to rest elsewhere.
   */
  until(target: Target<Types>): Promise<void>;
  /** Go on until one more superstep is saved, or the run rests. */
  step(): Promise<void>;
  /** Go on until the run rests; rejects with the error of a run that failed. A test that expects one waits `until("failed")`. */
  finish(): Promise<void>;
  /** Die as by SIGKILL, and reopen the store: what was not saved is gone. Go on with {@link TestRun.resume}. */
  crash(): Promise<void>;
  /** Go on in a new process, with the answers of people, until the run rests or is in the state `until`. */
  resume(
    answers?: Answers<Types["interrupts"] & Types["innerInterrupts"]>,
    options?: { readonly until?: Target<Types> },
  ): Promise<void>;
  /**
   * Say something to the run while it works: it is heard when the run goes on. A machine drawn by hand is sent an event, and
   * goes on until it rests.
   */
  send(said: LetterInput | SentEvent, options?: SendOptions): Promise<void>;
  /** Cancel, and go on until the run rests. */
  cancel(reason?: string): Promise<void>;
  /**
   * Another process that finds what is saved now, over a copy of the thread in memory: this run is not touched, and the other
   * has crashed and is there to be resumed. Its model says again what it has said here. Items of the long-term store are not
   * copied.
   */
  twin(): Promise<TestRun<Types>>;
}

/**
 * Prepare a run for a test. It starts with the first `until`, `step` or `finish`, in a world whose time skips ahead
 * whenever nothing else is left to do. Give a function that makes the graph, and a crash drops its variables too.
 */
export function testRun<Types extends GraphTypes, Words>(
  graph: Testable<Types, Words> | MakesGraph<Types, Words>,
  options: TestRunOptions<Types, Words>,
): Promise<TestRun<Types>> {
  return runInHand(typeof graph === "function" ? graph : () => graph, options as AnyOptions, false);
}

/** A run in the hands of a test; one that is `left` was begun by a process that has died. */
async function runInHand<Types extends GraphTypes, Words>(
  make: MakesGraph<Types, Words>,
  options: AnyOptions,
  left: boolean,
): Promise<TestRun<Types>> {
  const {
    input,
    model: answers,
    clock = "virtual",
    seed = 1,
    store: given,
    thread: named,
    startAt: point,
    order,
    ...common
  } = options;
  const heard: Heard = new Map();
  const model = answers === undefined ? undefined : hearing(answers, heard);
  let graph = make();
  const outside = clock === "virtual" ? virtualClock({ seed }) : clock === "real" ? systemWorld() : clock;
  const place = storePlace(given);
  const { codec = plainCodec } = common;
  const thread = named ?? freshId("thread_", outside.random);
  const entries: TraceEntry[] = [];
  const trace: Trace<Types> = { graph: graph.name, entries };
  const initial = initialState(graph);
  /** What happened after the moment in which the test holds the run: it is seen when the run goes on. */
  let unseen: TraceEntry[] = [];
  let inner = place.open();
  let life = beginLife(inner, outside);
  if (point !== undefined) await startAt(inner, graph as Graph, thread, point, { world: outside, codec });
  let handle: RunHandle<unknown> | undefined;
  let status: TestStatus = "ready";
  let state: Record<string, unknown> = initial;
  let value: Json = await savedValue(inner, thread, codec);
  if (point !== undefined) entries.push({ type: "process.resumed", value, answers: [] });
  let interrupts: readonly OpenInterrupt[] = [];
  let error: unknown;
  let reached: (() => boolean) | undefined;

  function start(begin: (graph: Graph<Types>, life: Life) => RunHandle<unknown>): void {
    const mine = life;
    const { alive } = mine;
    const watched = instrument<Types>(graph, {
      alive,
      executed: see,
      told: (entry) => {
        if (alive()) see(entry);
      },
      model,
      gate: (door) => {
        const held = mine.held();
        if (order === undefined) return held;
        return held === undefined ? order.gate(door, alive) : held.then(() => order.gate(door, alive));
      },
    });
    error = undefined;
    interrupts = [];
    status = "held";
    handle = begin(watched, mine);
    handle.on((event) => {
      if (mine.alive()) see(event);
    });
    handle.result.then(
      (end) => {
        if (mine.alive()) rest(end);
      },
      (failure: unknown) => {
        if (!mine.alive()) return;
        status = "failed";
        error = failure;
        for (const event of unseen.splice(0)) take(event);
      },
    );
  }

  function see(event: TraceEntry): void {
    if (reached === undefined) unseen.push(event);
    else take(event);
  }

  function take(event: TraceEntry): void {
    entries.push(event);
    if (event.type === "step.committed" && event.within === undefined) {
      state = { ...state };
      for (const [channel, delta] of Object.entries(event.changes)) state[channel] = applyDelta(state[channel], delta);
    }
    if (event.type === "transition.taken" && event.path.length === 1) value = event.to;
    // A superstep is told in two events: only after the second do state and machine agree.
    if (event.type === "step.committed" || reached?.() !== true) return;
    reached = undefined;
    life.hold();
  }

  function rest(end: RunResult<unknown>): void {
    status = end.status;
    for (const event of unseen.splice(0)) take(event);
    state = { ...(end.state as Record<string, unknown>) };
    interrupts = end.status === "waiting" ? end.interrupts : [];
  }

  /** Let the run go on until `stop` holds or it rests. */
  async function proceed(stop: () => boolean): Promise<void> {
    if (status === "ready") begin();
    if (status !== "held") return;
    reached = stop;
    while (unseen.length > 0 && reached !== undefined) take(unseen.shift() as TraceEntry);
    if (reached !== undefined) life.release();
    const goesOn = (): boolean => status === "held" && reached !== undefined;
    if (isVirtual(outside)) {
      while (goesOn()) {
        await outside.settle();
        if (!goesOn() || order?.release() === true) continue;
        if (!(await outside.next()) && !(await somethingElse(goesOn))) throw stuck();
      }
    } else
      while (goesOn()) {
        await realTurn();
        order?.release();
      }
    reached = undefined;
  }

  function begin(): void {
    const words =
      input === undefined || graph.inputOf === undefined || !isWords(input)
        ? input
        : graph.inputOf(input as Words, outside);
    start((watched, { store, world }) =>
      point !== undefined
        ? resume(watched, { ...common, thread, store, world } as unknown as ResumeOptions<Types>)
        : run(watched, { ...common, thread, store, world, input: words } as unknown as RunOptions<Types>),
    );
  }

  function checkAlive(): void {
    if (status === "crashed") throw new Error("the process of this run is not there any more: go on with resume()");
  }

  function stuck(): Error {
    return new Error(
      `nothing happens any more in the run of graph "${graph.name}": it stands in ${JSON.stringify(value)}, no timer is set, and nothing is under way.\nThe path: ${pathText(trace)}`,
    );
  }

  async function reach(target: Target<Types>): Promise<void> {
    const met = meets(target);
    const resting =
      typeof target === "string" ? isResting(target) : typeof target === "object" && restsIn(graph, target);
    if (status !== "ready" && met() && (!resting || status !== "held")) return;
    await proceed(() => !resting && met());
    if (met()) return;
    const name =
      typeof target === "function"
        ? "what the test waits for"
        : typeof target === "string"
          ? `"${target}"`
          : `a state with the tag "${target.tag}"`;
    throw new Error(
      `the run of graph "${graph.name}" never came to ${name}: it is ${status}.\n${account(trace, typeof target === "string" ? target : undefined)}`,
      { cause: error },
    );
  }

  function meets(target: Target<Types>): () => boolean {
    if (typeof target === "function") return () => target(t);
    if (typeof target === "string") return () => isIn(value, target);
    return () => tagsAt(graph, value).includes(target.tag);
  }

  /** What another process finds. */
  async function findSaved(): Promise<void> {
    const known = (await inner.thread(thread)) !== undefined;
    const saved = known ? await getState(graph, { store: inner, thread, codec }) : undefined;
    state = saved === undefined ? initial : { ...(saved.state as Record<string, unknown>) };
    interrupts = saved?.interrupts ?? [];
    if (saved?.status !== "waiting" || left) value = await savedValue(inner, thread, codec);
    status = "crashed";
  }

  const t: TestRun<Types> = {
    get status() {
      return status;
    },
    get state() {
      return state as Types["state"];
    },
    get value() {
      return value;
    },
    get snapshot() {
      const context = isDrawn(graph) && "context" in state ? state["context"] : {};
      return graph.machine.resolveState({ value: value as string, context });
    },
    get tags() {
      return tagsAt(graph, value);
    },
    get accepts() {
      return interrupts.map(({ key }) => key);
    },
    get events() {
      return eventsAt(graph, value);
    },
    get interrupts() {
      return interrupts;
    },
    get error() {
      return error;
    },
    trace,
    get effects() {
      return effectsIn(trace);
    },
    thread,
    world: outside,
    until: reach,
    step: async () => {
      checkAlive();
      const before = entries.length;
      await proceed(() => entries.length > before && isCommit(entries.at(-1)));
    },
    finish: async () => {
      checkAlive();
      await proceed(() => false);
      if (status === "failed") throw error;
    },
    crash: async () => {
      if (status === "ready") begin();
      life.die();
      entries.push(...unseen.filter((event) => event.type === "tool.executed" || event.type === "task.started"));
      unseen = [];
      inner = place.reopen(inner);
      life = beginLife(inner, outside);
      graph = make();
      entries.push({ type: "process.crashed" });
      await findSaved();
    },
    resume: async (answers, { until } = {}) => {
      if (status === "ready" || status === "held")
        throw new Error(
          `a run that is ${status} cannot be resumed: let it come to rest with finish(), or let it crash()`,
        );
      const keys = Object.keys(answers ?? {});
      if (keys.length === 0) value = await savedValue(inner, thread, codec);
      entries.push({ type: "process.resumed", value, answers: keys });
      start((watched, { store, world }) =>
        resume(watched, {
          ...common,
          thread,
          store,
          world,
          ...(answers && { answers }),
        } as unknown as ResumeOptions<Types>),
      );
      if (until === undefined) await proceed(() => false);
      else await reach(until);
      if (status === "failed" && until === undefined) throw error;
    },
    cancel: async (reason) => {
      if (status === "ready") begin();
      handle?.cancel(reason);
      await proceed(() => false);
    },
    send: async (said, { kind = "steer" } = {}) => {
      if (status === "ready" || status === "held") await (isDrawn(graph) ? proceed(() => false) : undefined);
      if (isDrawn(graph)) {
        const { type, ...rest } = said as SentEvent;
        return t.resume({ [type]: rest } as never);
      }
      if (status === "ready")
        throw new Error("a run that has not begun hears nothing: let it go first, with until or step");
      if (status === "held" && handle !== undefined) await handle[kind](said as LetterInput);
      else await steer(graph, { store: inner, thread, world: outside, input: said as LetterInput, kind });
    },
    twin: async () => {
      const copy = memoryStore();
      await copy.insert(await inner.image(thread));
      const now = outside.clock.now();
      const clock = virtualClock({ seed: seed + 1, now });
      const again = answers === undefined ? {} : { model: sayingAgain(answers, heard) };
      return runInHand(make, { ...options, ...again, store: copy, thread, clock }, true);
    },
  };
  tellOf(trace, { graph: graph as Graph, run: t as never, initial: { ...initial, ...point?.state } });
  order?.watch(t as never);
  if (left) await findSaved();
  return t;
}

interface AnyOptions extends TestOptions<unknown> {
  readonly thread?: string;
  readonly codec?: Codec;
}

/** Whether a run rests in every state of a graph that has this tag. */
function restsIn(graph: Graph, { tag }: { readonly tag: string }): boolean {
  return !isDrawn(graph) && (tag === "waiting" || tag === "failed");
}

function isVirtual(world: World): world is VirtualClock {
  return "settle" in world;
}

function isCommit(entry: TraceEntry | undefined): boolean {
  return entry?.type === "transition.taken" && entry.event === "step.commit";
}

function isWords(input: unknown): boolean {
  return typeof input === "string" || Array.isArray(input);
}

function initialState(graph: Graph): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(graph.state.channels).flatMap(([name, channel]) => {
      const initial = channel.initial();
      return initial === undefined ? [] : [[name, initial.value]];
    }),
  );
}

/** Where the saved machine stands. */
async function savedValue(store: Store, thread: string, codec: Codec): Promise<Json> {
  const head = await store.head(thread);
  if (head === undefined) return "start";
  return (codec.decode(head.control) as { readonly machine: Json }).machine ?? "start";
}

function realTurn(): Promise<void> {
  return new Promise((resolve) => systemWorld().schedule.soon(resolve));
}

/** With no timer left, something outside may still move the run, such as a server: it gets two seconds of real time. */
async function somethingElse(goesOn: () => boolean): Promise<boolean> {
  const { clock } = systemWorld();
  const began = clock.monotonic();
  while (goesOn() && clock.monotonic() - began < 2_000) await realTurn();
  return !goesOn();
}
