/** `testRun`: a run that stops where a test wants to look, dies when it says so, and goes on in a new process. */
import {
  type Answers,
  applyDelta,
  type Codec,
  freshId,
  type Graph,
  type GraphTypes,
  getState,
  type Json,
  type MemoryStore,
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
  systemWorld,
  type World,
} from "@statewright/core";
import { type VirtualClock, virtualClock } from "../virtual-clock.ts";
import { instrument } from "./instrument.ts";
import { beginLife, type Life } from "./life.ts";
import { type StartingPoint, startAt } from "./start-at.ts";
import { isIn, isResting, type StateName } from "./state-names.ts";
import { pathText, type Trace, type TraceEntry } from "./trace.ts";

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

/** Where a run is to stop: a state, or whatever holds of it. */
export type Target<Types extends GraphTypes> = StateName<Types["nodes"]> | ((t: TestRun<Types>) => boolean);

/** A run in the hands of a test. Nothing of it happens by itself: each function below lets it go on and holds it again. */
export interface TestRun<Types extends GraphTypes = GraphTypes> {
  readonly status: TestStatus;
  /** The state after the last superstep that was saved. */
  readonly state: Types["state"];
  /** Where the machine stands. */
  readonly value: Json;
  readonly interrupts: readonly OpenInterrupt[];
  /** The error that failed the run. */
  readonly error: unknown;
  readonly trace: Trace<Types>;
  readonly thread: string;
  /** The clock, the log and chance of the run; a virtual clock can be moved. */
  readonly world: World;
  /**
   * Go on until the run is in a state, and hold it there; what is under way then is not saved yet. In `interrupted`,
   * `failed` and `done` the run rests, and everything is saved. Throws when it comes to rest elsewhere.
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
  /** Cancel, and go on until the run rests. */
  cancel(reason?: string): Promise<void>;
}

/**
 * Prepare a run for a test. It starts with the first `until`, `step` or `finish`, in a world whose time skips ahead
 * whenever nothing else is left to do.
 */
export async function testRun<Types extends GraphTypes, Words>(
  graph: Testable<Types, Words>,
  options: TestRunOptions<Types, Words>,
): Promise<TestRun<Types>> {
  const {
    input,
    model,
    clock = "virtual",
    seed = 1,
    store: given,
    thread: named,
    startAt: point,
    ...common
  } = options as AnyOptions;
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
    const watched = instrument<Types>(graph, { alive: mine.alive, executed: see, model });
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
        if (goesOn() && !(await outside.next()) && !(await somethingElse(goesOn))) throw stuck();
      }
    } else while (goesOn()) await realTurn();
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

  function stuck(): Error {
    return new Error(
      `nothing happens any more in the run of graph "${graph.name}": it stands in ${JSON.stringify(value)}, no timer is set, and nothing is under way.\nThe path: ${pathText(trace)}`,
    );
  }

  async function reach(target: Target<Types>): Promise<void> {
    const met = typeof target === "function" ? () => target(t) : () => isIn(value, target);
    const resting = typeof target === "string" && isResting(target);
    if (status !== "ready" && met() && (!resting || status !== "held")) return;
    await proceed(() => !resting && met());
    if (met()) return;
    const name = typeof target === "function" ? "what the test waits for" : `"${target}"`;
    throw new Error(
      `the run of graph "${graph.name}" never came to ${name}: it is ${status}${error instanceof Error ? `: ${error.message}` : ""}.\nThe path: ${pathText(trace)}`,
      { cause: error },
    );
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
    get interrupts() {
      return interrupts;
    },
    get error() {
      return error;
    },
    trace,
    thread,
    world: outside,
    until: reach,
    step: async () => {
      const before = entries.length;
      await proceed(() => entries.length > before && isCommit(entries.at(-1)));
    },
    finish: async () => {
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
      entries.push({ type: "process.crashed" });
      const known = (await inner.thread(thread)) !== undefined;
      const saved = known ? await getState(graph, { store: inner, thread, codec }) : undefined;
      state = saved === undefined ? initial : { ...(saved.state as Record<string, unknown>) };
      interrupts = saved?.interrupts ?? [];
      if (saved?.status !== "waiting") value = await savedValue(inner, thread, codec);
      status = "crashed";
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
  };
  return t;
}

interface AnyOptions extends TestOptions<unknown> {
  readonly thread?: string;
  readonly codec?: Codec;
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

interface StorePlace {
  open(): Store;
  /** The store as the next process finds it. */
  reopen(dead: Store): Store;
}

function storePlace(given: TestOptions<unknown>["store"]): StorePlace {
  if (typeof given === "function")
    return {
      open: given,
      reopen: (dead) => {
        dead.close();
        return given();
      },
    };
  const store = given ?? memoryStore();
  return {
    open: () => store,
    reopen: (dead) => {
      if (!canDie(dead))
        throw new Error(
          `the store "${dead.name}" cannot die inside this process: give testRun a function that opens it, such as store: () => sqliteStore(path)`,
        );
      const next = dead.peer();
      dead.crash();
      return next;
    },
  };
}

function canDie(store: Store): store is MemoryStore {
  return "peer" in store && "crash" in store;
}
