/** `testRun`: a run that a test can hold in a state, crash at any point, and resume in a new simulated process. */
import {
  type Codec,
  type Graph,
  type GraphTypes,
  getState,
  type InboxInput,
  type Json,
  type Model,
  memoryStore,
  type OpenInterrupt,
  type ResumeOptions,
  type RunHandle,
  type RunOptions,
  type RunResult,
  resume,
  run,
  type Store,
  steer,
  type World,
} from "@statewright/core";
import { createId, systemWorld } from "@statewright/core/adapter";
import { applyDelta, plainCodec } from "@statewright/core/store";
import { listEvents, listTags } from "../node/machine-snapshot.ts";
import { isInState, isRestState } from "../node/state-names.ts";
import type { Order } from "../order/order.ts";
import { formatPath, listEffects, type Trace, type TraceEntry } from "../trace/trace.ts";
import { type VirtualClock, virtualClock } from "../virtual-clock.ts";
import { explainRun } from "./explain-run.ts";
import { instrument, isDurableMachine } from "./instrument.ts";
import { type ProcessRun, startProcessRun } from "./process-run.ts";
import { createReopenableStore } from "./reopenable-store.ts";
import { type RecordedReplies, recordReplies, replayReplies } from "./replay-models.ts";
import { type StartingPoint, writeStartCheckpoint } from "./start-checkpoint.ts";
import type { SentEvent, Target, TestRun, TestStatus } from "./test-run.ts";
import { attachTraceContext } from "./trace-context.ts";

/** Options of `testRun` in addition to the run options of the graph. */
export interface TestOptions<Input> {
  readonly input?: Input;
  /** Replaces every model of the graph. */
  readonly model?: Model;
  /** `virtual` (the default) skips every wait; `real` waits; or a virtual clock created by the test. */
  readonly clock?: "virtual" | "real" | VirtualClock;
  /** Seed of the random source of a virtual clock. Default 1. */
  readonly seed?: number;
  /**
   * Store of the thread: a memory store by default. For crashes with another store, pass a function that opens the
   * store.
   */
  readonly store?: Store | (() => Store);
  /** Starts before this node with this state, instead of with an input. */
  readonly startAt?: StartingPoint;
  /** Order of completion of concurrent work, from `everyOrder`. */
  readonly order?: Order;
}

/** Input of a graph under test; an agent also accepts the text of a user message. */
export type TestInput<Types extends GraphTypes, Words> = unknown extends Words
  ? Types["input"]
  : Words | Types["input"];

/** Options of `testRun`. */
export type TestRunOptions<Types extends GraphTypes, Words> = Omit<RunOptions<Types>, "store" | "world" | "input"> &
  TestOptions<TestInput<Types, Words>>;

/** Graph, or an agent with a function that converts text to its input. */
export type Testable<Types extends GraphTypes, Words> = Graph<Types> & {
  readonly toInput?: (words: Words, world: World) => object;
};

/** Function that creates the graph for each process, so that a crash also drops the variables of its functions. */
export type GraphFactory<Types extends GraphTypes, Words> = () => Testable<Types, Words>;

/**
 * Prepares a run for a test. The run starts with the first `until`, `step` or `finish`, in a world whose time skips
 * ahead when no other work is pending. Pass a function that creates the graph, so that a crash drops the variables of
 * its functions too.
 */
export function testRun<Types extends GraphTypes, Words>(
  graph: Testable<Types, Words> | GraphFactory<Types, Words>,
  options: TestRunOptions<Types, Words>,
): Promise<TestRun<Types>> {
  return createTestRun(typeof graph === "function" ? graph : () => graph, options as AnyOptions, false);
}

/** Creates a test run; `left` marks a run started by a process that has died. */
async function createTestRun<Types extends GraphTypes, Words>(
  createGraph: GraphFactory<Types, Words>,
  options: AnyOptions,
  isAbandoned: boolean,
): Promise<TestRun<Types>> {
  const {
    input,
    model: answers,
    clock = "virtual",
    seed = 1,
    store: storeOption,
    thread: threadOption,
    startAt: point,
    order,
    ...common
  } = options;
  const replies: RecordedReplies = new Map();
  const model = answers === undefined ? undefined : recordReplies(answers, replies);
  let graph = createGraph();
  const outerWorld = clock === "virtual" ? virtualClock({ seed }) : clock === "real" ? systemWorld() : clock;
  const reopenable = createReopenableStore(storeOption);
  const { codec = plainCodec } = common;
  const thread = threadOption ?? createId("thread_", outerWorld.random);
  const entries: TraceEntry[] = [];
  const trace: Trace<Types> = { graph: graph.name, entries };
  const initial = createInitialState(graph);
  /** Entries after the moment at which the test holds the run, recorded when the run advances. */
  let pendingEntries: TraceEntry[] = [];
  let innerStore = reopenable.open();
  let processRun = startProcessRun(innerStore, outerWorld);
  if (point !== undefined)
    await writeStartCheckpoint(innerStore, graph as Graph, thread, point, { world: outerWorld, codec });
  let handle: RunHandle<unknown> | undefined;
  let status: TestStatus = "ready";
  let state: Record<string, unknown> = initial;
  let value: Json = await loadMachineValue(innerStore, thread, codec);
  if (point !== undefined) entries.push({ type: "process.resumed", value, answers: [] });
  let interrupts: readonly OpenInterrupt[] = [];
  let error: unknown;
  let isReached: (() => boolean) | undefined;

  function startProcess(startHandle: (graph: Graph<Types>, life: ProcessRun) => RunHandle<unknown>): void {
    const current = processRun;
    const { isAlive } = current;
    const instrumented = instrument<Types>(graph, {
      isAlive,
      onToolExecuted: receiveEntry,
      onEntry: (entry) => {
        if (isAlive()) receiveEntry(entry);
      },
      model,
      gate: (gateName) => {
        const release = current.waitForRelease();
        if (order === undefined) return release;
        return release === undefined
          ? order.gate(gateName, isAlive)
          : release.then(() => order.gate(gateName, isAlive));
      },
    });
    error = undefined;
    interrupts = [];
    status = "held";
    handle = startHandle(instrumented, current);
    handle.on((event) => {
      if (current.isAlive()) receiveEntry(event);
    });
    handle.result.then(
      (end) => {
        if (current.isAlive()) finishRun(end);
      },
      (failure: unknown) => {
        if (!current.isAlive()) return;
        status = "failed";
        error = failure;
        for (const event of pendingEntries.splice(0)) recordEntry(event);
      },
    );
  }

  function receiveEntry(event: TraceEntry): void {
    if (isReached === undefined) pendingEntries.push(event);
    else recordEntry(event);
  }

  function recordEntry(event: TraceEntry): void {
    entries.push(event);
    if (event.type === "step.committed" && event.within === undefined) {
      state = { ...state };
      for (const [channel, delta] of Object.entries(event.changes)) state[channel] = applyDelta(state[channel], delta);
    }
    if (event.type === "transition.taken" && event.path.length === 1) value = event.to;
    // A superstep emits two events; state and machine agree only after the second event.
    if (event.type === "step.committed" || isReached?.() !== true) return;
    isReached = undefined;
    processRun.hold();
  }

  function finishRun(end: RunResult<unknown>): void {
    status = end.status;
    for (const event of pendingEntries.splice(0)) recordEntry(event);
    state = { ...(end.state as Record<string, unknown>) };
    interrupts = end.status === "waiting" ? end.interrupts : [];
  }

  /** Advances the run until `stop` returns true or the run rests. */
  async function advance(stop: () => boolean): Promise<void> {
    if (status === "ready") begin();
    if (status !== "held") return;
    isReached = stop;
    while (pendingEntries.length > 0 && isReached !== undefined) recordEntry(pendingEntries.shift() as TraceEntry);
    if (isReached !== undefined) processRun.release();
    const canAdvance = (): boolean => status === "held" && isReached !== undefined;
    if (isVirtual(outerWorld)) {
      while (canAdvance()) {
        await outerWorld.settle();
        if (!canAdvance() || order?.release() === true) continue;
        if (!(await outerWorld.next()) && !(await waitForExternalEvent(canAdvance))) throw createStuckError();
      }
    } else
      while (canAdvance()) {
        await waitForTurn();
        order?.release();
      }
    isReached = undefined;
  }

  function begin(): void {
    const words =
      input === undefined || graph.toInput === undefined || !isText(input)
        ? input
        : graph.toInput(input as Words, outerWorld);
    startProcess((watched, { store, world }) =>
      point !== undefined
        ? resume(watched, { ...common, thread, store, world } as unknown as ResumeOptions<Types>)
        : run(watched, { ...common, thread, store, world, input: words } as unknown as RunOptions<Types>),
    );
  }

  function checkAlive(): void {
    if (status === "crashed") throw new Error("testRun: the process of this run has crashed. Use resume() to continue");
  }

  function createStuckError(): Error {
    return new Error(
      `the run of graph "${graph.name}" cannot advance: it is in ${JSON.stringify(value)}, with no timer and no pending work.\nThe path: ${formatPath(trace)}`,
    );
  }

  async function advanceTo(target: Target<Types>): Promise<void> {
    const isMet = createTargetCheck(target);
    const isRestTarget =
      typeof target === "string" ? isRestState(target) : typeof target === "object" && isRestTag(graph, target);
    if (status !== "ready" && isMet() && (!isRestTarget || status !== "held")) return;
    await advance(() => !isRestTarget && isMet());
    if (isMet()) return;
    const name =
      typeof target === "function"
        ? "the condition of the test"
        : typeof target === "string"
          ? `"${target}"`
          : `a state with the tag "${target.tag}"`;
    throw new Error(
      `the run of graph "${graph.name}" never reached ${name}: it is ${status}.\n${explainRun(trace, typeof target === "string" ? target : undefined)}`,
      { cause: error },
    );
  }

  function createTargetCheck(target: Target<Types>): () => boolean {
    if (typeof target === "function") return () => target(t);
    if (typeof target === "string") return () => isInState(value, target);
    return () => listTags(graph, value).includes(target.tag);
  }

  /** Loads the saved state, as another process would. */
  async function loadSaved(): Promise<void> {
    const known = (await innerStore.thread(thread)) !== undefined;
    const saved = known ? await getState(graph, { store: innerStore, thread, codec }) : undefined;
    state = saved === undefined ? initial : { ...(saved.state as Record<string, unknown>) };
    interrupts = saved?.interrupts ?? [];
    if (saved?.status !== "waiting" || isAbandoned) value = await loadMachineValue(innerStore, thread, codec);
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
      const context = isDurableMachine(graph) && "context" in state ? state["context"] : {};
      return graph.machine.resolveState({ value: value as string, context });
    },
    get tags() {
      return listTags(graph, value);
    },
    get accepts() {
      return interrupts.map(({ key }) => key);
    },
    get events() {
      return listEvents(graph, value);
    },
    get interrupts() {
      return interrupts;
    },
    get error() {
      return error;
    },
    trace,
    get effects() {
      return listEffects(trace);
    },
    thread,
    world: outerWorld,
    until: advanceTo,
    step: async () => {
      checkAlive();
      const before = entries.length;
      await advance(() => entries.length > before && isCommit(entries.at(-1)));
    },
    finish: async () => {
      checkAlive();
      await advance(() => false);
      if (status === "failed") throw error;
    },
    crash: async () => {
      if (status === "ready") begin();
      processRun.kill();
      entries.push(
        ...pendingEntries.filter((event) => event.type === "tool.executed" || event.type === "task.started"),
      );
      pendingEntries = [];
      innerStore = reopenable.reopen(innerStore);
      processRun = startProcessRun(innerStore, outerWorld);
      graph = createGraph();
      entries.push({ type: "process.crashed" });
      await loadSaved();
    },
    resume: async (answers, { until } = {}) => {
      if (status === "ready" || status === "held")
        throw new Error(
          `testRun: a run that is ${status} cannot be resumed. Use finish() to let the run rest, or crash()`,
        );
      const keys = Object.keys(answers ?? {});
      if (keys.length === 0) value = await loadMachineValue(innerStore, thread, codec);
      entries.push({ type: "process.resumed", value, answers: keys });
      startProcess((watched, { store, world }) =>
        resume(watched, {
          ...common,
          thread,
          store,
          world,
          ...(answers && { answers }),
        } as unknown as ResumeOptions<Types>),
      );
      if (until === undefined) await advance(() => false);
      else await advanceTo(until);
      if (status === "failed" && until === undefined) throw error;
    },
    cancel: async (reason) => {
      if (status === "ready") begin();
      handle?.cancel(reason);
      await advance(() => false);
    },
    send: async (message, { kind = "steer" } = {}) => {
      if (status === "ready" || status === "held") await (isDurableMachine(graph) ? advance(() => false) : undefined);
      if (isDurableMachine(graph)) {
        const { type, ...rest } = message as SentEvent;
        return t.resume({ [type]: rest } as never);
      }
      if (status === "ready")
        throw new Error("testRun: a run that has not started accepts no message. Use until or step to start the run");
      if (status === "held" && handle !== undefined) await handle[kind](message as InboxInput);
      else await steer(graph, { store: innerStore, thread, world: outerWorld, input: message as InboxInput, kind });
    },
    twin: async () => {
      const copy = memoryStore();
      await copy.importThread(await innerStore.exportThread(thread));
      const now = outerWorld.clock.now();
      const clock = virtualClock({ seed: seed + 1, now });
      const modelOption = answers === undefined ? {} : { model: replayReplies(answers, replies) };
      return createTestRun(createGraph, { ...options, ...modelOption, store: copy, thread, clock }, true);
    },
  };
  attachTraceContext(trace, { graph: graph as Graph, run: t as never, initial: { ...initial, ...point?.state } });
  order?.watch(t as never);
  if (isAbandoned) await loadSaved();
  return t;
}

interface AnyOptions extends TestOptions<unknown> {
  readonly thread?: string;
  readonly codec?: Codec;
}

/** Returns true if the run rests in every state of the graph with this tag. */
function isRestTag(graph: Graph, { tag }: { readonly tag: string }): boolean {
  return !isDurableMachine(graph) && (tag === "waiting" || tag === "failed");
}

function isVirtual(world: World): world is VirtualClock {
  return "settle" in world;
}

function isCommit(entry: TraceEntry | undefined): boolean {
  return entry?.type === "transition.taken" && entry.event === "step.commit";
}

function isText(input: unknown): boolean {
  return typeof input === "string" || Array.isArray(input);
}

function createInitialState(graph: Graph): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(graph.state.channels).flatMap(([name, channel]) => {
      const initial = channel.initial();
      return initial === undefined ? [] : [[name, initial.value]];
    }),
  );
}

/** Loads the saved state value of the machine. */
async function loadMachineValue(store: Store, thread: string, codec: Codec): Promise<Json> {
  const head = await store.head(thread);
  if (head === undefined) return "start";
  return (codec.decode(head.control) as { readonly machine: Json }).machine ?? "start";
}

function waitForTurn(): Promise<void> {
  return new Promise((resolve) => systemWorld().schedule.soon(resolve));
}

/** Waits up to two seconds of real time, without timers, for an external event such as a server response. */
async function waitForExternalEvent(canAdvance: () => boolean): Promise<boolean> {
  const { clock } = systemWorld();
  const startedAt = clock.monotonic();
  while (canAdvance() && clock.monotonic() - startedAt < 2_000) await waitForTurn();
  return !canAdvance();
}
