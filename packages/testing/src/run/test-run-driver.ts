/** Driver of a test run: starts, holds, advances and crashes the simulated processes of a thread. */
import {
  type Graph,
  type GraphTypes,
  getState,
  type InboxInput,
  type Json,
  type Model,
  memoryStore,
  type RunHandle,
  resume,
  run,
  type Store,
  steer,
  type World,
} from "@statewright/core";
import { createId, systemWorld } from "@statewright/core/adapter";
import { type Codec, plainCodec } from "@statewright/core/store";
import { listTags } from "../node/machine-snapshot.ts";
import { isInState, isRestState } from "../node/state-names.ts";
import { formatPath, type Trace, type TraceEntry } from "../trace/trace.ts";
import { virtualClock } from "../virtual-clock.ts";
import { advanceWorld } from "./advance-world.ts";
import { explainRun } from "./explain-run.ts";
import { instrument, isDurableMachine } from "./instrument.ts";
import { type ProcessRun, startProcessRun } from "./process-run.ts";
import { createReopenableStore, type ReopenableStore } from "./reopenable-store.ts";
import { type RecordedReplies, recordReplies, replayReplies } from "./replay-models.ts";
import { RunRecord } from "./run-record.ts";
import { writeStartCheckpoint } from "./start-checkpoint.ts";
import type { GraphFactory, Testable, TestOptions } from "./test-options.ts";
import type { SentEvent } from "./test-run.ts";

/** Graph and options of a test run, without the types of the graph. */
export interface DriverSetup {
  readonly createGraph: GraphFactory<GraphTypes, never>;
  readonly options: DriverOptions;
  /** True for a thread that another test run has started. */
  readonly isTwin: boolean;
}

/** Options of a run, and of its test. */
export interface DriverOptions extends TestOptions<unknown> {
  readonly thread?: string;
  readonly codec?: Codec;
}

/** Stop condition of a run: a state, a tag of states, or a predicate. */
export type StopTarget = string | { readonly tag: string } | (() => boolean);

/** Opened thread of a run. */
interface OpenedThread {
  readonly graph: Testable<GraphTypes, never>;
  readonly world: World;
  readonly thread: string;
  readonly reopenable: ReopenableStore;
  readonly store: Store;
  /** Saved state value of the machine. */
  readonly value: Json;
}

/** Opens the store of a test run and creates the driver. Writes the first checkpoint for the option `startAt`. */
export async function createDriver(setup: DriverSetup): Promise<TestRunDriver> {
  const { clock = "virtual", seed = 1, startAt, store: source, codec = plainCodec } = setup.options;
  const graph = setup.createGraph();
  const world = clock === "virtual" ? virtualClock({ seed }) : clock === "real" ? systemWorld() : clock;
  const reopenable = createReopenableStore(source);
  const thread = setup.options.thread ?? createId("thread_", world.random);
  const store = reopenable.open();
  if (startAt !== undefined) await writeStartCheckpoint(startAt, { store, graph, thread, world, codec });
  const value = await loadMachineValue(store, thread, codec);
  return new TestRunDriver(setup, { graph, world, thread, reopenable, store, value });
}

/** Driver of a thread. The record holds what the test sees. */
export class TestRunDriver {
  readonly world: World;
  readonly thread: string;
  readonly trace: Trace;
  readonly record: RunRecord;
  readonly initialState: Readonly<Record<string, unknown>>;
  readonly #setup: DriverSetup;
  readonly #codec: Codec;
  readonly #replies: RecordedReplies = new Map();
  readonly #model: Model | undefined;
  readonly #reopenable: ReopenableStore;
  #graph: Testable<GraphTypes, never>;
  #store: Store;
  #process: ProcessRun;
  #handle: RunHandle<unknown> | undefined;

  constructor(setup: DriverSetup, { graph, world, thread, reopenable, store, value }: OpenedThread) {
    const { codec = plainCodec, model, startAt } = setup.options;
    this.#setup = setup;
    this.#codec = codec;
    this.#model = model === undefined ? undefined : recordReplies(model, this.#replies);
    this.#reopenable = reopenable;
    this.#graph = graph;
    this.#store = store;
    this.#process = startProcessRun(store, world);
    this.world = world;
    this.thread = thread;
    this.initialState = createInitialState(graph);
    this.record = new RunRecord({ state: this.initialState, value, hold: () => this.#process.hold() });
    this.trace = { graph: graph.name, entries: this.record.entries };
    if (startAt !== undefined) this.record.entries.push({ type: "process.resumed", value, answers: [] });
  }

  get options(): DriverOptions {
    return this.#setup.options;
  }

  /** Graph of the current process. */
  get graph(): Graph {
    return this.#graph;
  }

  /** Advances the run to a target. Throws when the run rests in another state. */
  async advanceTo(target: StopTarget): Promise<void> {
    const isMet = this.#createTargetCheck(target);
    const isRestTarget =
      typeof target === "string" ? isRestState(target) : typeof target === "object" && isRestTag(this.#graph, target);
    if (this.record.status !== "ready" && isMet() && (!isRestTarget || this.record.status !== "held")) return;
    await this.#advance(() => !isRestTarget && isMet());
    if (isMet()) return;
    const missed = typeof target === "string" ? target : undefined;
    throw new Error(
      `the run of graph "${this.#graph.name}" never reached ${formatTarget(target)}: it is ${this.record.status}.\n${explainRun(this.trace, missed)}`,
      { cause: this.record.error },
    );
  }

  /** Advances the run until the next superstep is saved, or the run rests. */
  async step(): Promise<void> {
    this.#checkAlive();
    const { entries } = this.record;
    const before = entries.length;
    await this.#advance(() => entries.length > before && isCommit(entries.at(-1)));
  }

  /** Advances the run until the run rests. Throws the error of a failed run. */
  async finish(): Promise<void> {
    this.#checkAlive();
    await this.#advanceToRest();
    if (this.record.status === "failed") throw this.record.error;
  }

  /** Kills the process, reopens the store and creates the graph of the next process. */
  async crash(): Promise<void> {
    if (this.record.status === "ready") this.#begin();
    this.#process.kill();
    this.record.dropPending();
    this.#store = await this.#reopenable.reopen(this.#store);
    this.#process = startProcessRun(this.#store, this.world);
    this.#graph = this.#setup.createGraph();
    this.record.entries.push({ type: "process.crashed" });
    await this.loadSaved();
  }

  /** Resumes the run in a new process until a target, or until the run rests. */
  async resume(answers: Readonly<Record<string, unknown>> | undefined, until: StopTarget | undefined): Promise<void> {
    const { record, thread } = this;
    if (record.status === "ready" || record.status === "held")
      throw new Error(
        `resume: expected a run at rest or after a crash, got a run that is ${record.status}. Use finish() to let the run rest, or crash().`,
      );
    const keys = Object.keys(answers ?? {});
    if (keys.length === 0) record.value = await this.#loadMachineValue();
    record.entries.push({ type: "process.resumed", value: record.value, answers: keys });
    this.#startProcess((graph, { store, world }) =>
      resume(graph, { ...this.#getRunOptions(), thread, store, world, ...(answers && { answers }) }),
    );
    if (until !== undefined) return this.advanceTo(until);
    await this.#advanceToRest();
    if (record.status === "failed") throw record.error;
  }

  async cancel(reason: string | undefined): Promise<void> {
    if (this.record.status === "ready") this.#begin();
    this.#handle?.cancel(reason);
    await this.#advanceToRest();
  }

  /** Sends a message to the run, or an event to a durable machine. */
  async send(message: InboxInput | SentEvent, kind: "steer" | "followUp"): Promise<void> {
    const { record, thread, world } = this;
    if (isDurableMachine(this.#graph)) {
      if (record.status === "ready" || record.status === "held") await this.#advanceToRest();
      const { type, ...rest } = message as { readonly type: string };
      return this.resume({ [type]: rest }, undefined);
    }
    if (record.status === "ready")
      throw new Error("send: expected a started run, got a run that is ready. Use until or step to start the run.");
    if (record.status === "held" && this.#handle !== undefined) await this.#handle[kind](message as InboxInput);
    else await steer(this.#graph, { store: this.#store, thread, world, input: message as InboxInput, kind });
  }

  /** Creates a driver over a copy of the thread in memory. The model of the copy replays the replies of this run. */
  async createTwin(): Promise<TestRunDriver> {
    const { options } = this;
    const { createGraph } = this.#setup;
    const { model, seed = 1 } = options;
    const store = memoryStore();
    await store.importThread(await this.#store.exportThread(this.thread));
    const clock = virtualClock({ seed: seed + 1, now: this.world.clock.now() });
    const modelOption = model === undefined ? {} : { model: replayReplies(model, this.#replies) };
    const twinOptions = { ...options, ...modelOption, store, thread: this.thread, clock };
    return createDriver({ createGraph, options: twinOptions, isTwin: true });
  }

  /** Loads the saved state, as another process would. */
  async loadSaved(): Promise<void> {
    const { record, thread } = this;
    const isKnown = (await this.#store.thread(thread)) !== undefined;
    const saved = isKnown
      ? await getState(this.#graph as Graph, { store: this.#store, thread, codec: this.#codec })
      : undefined;
    record.state = saved === undefined ? this.initialState : { ...(saved.state as Record<string, unknown>) };
    record.interrupts = saved?.interrupts ?? [];
    if (saved?.status !== "waiting" || this.#setup.isTwin) record.value = await this.#loadMachineValue();
    record.status = "crashed";
  }

  #loadMachineValue(): Promise<Json> {
    return loadMachineValue(this.#store, this.thread, this.#codec);
  }

  async #advance(isReached: () => boolean): Promise<void> {
    const { record } = this;
    if (record.status === "ready") this.#begin();
    if (record.status !== "held") return;
    record.advance(isReached);
    if (record.isAdvancing()) this.#process.release();
    await advanceWorld(this.world, {
      isAdvancing: () => record.isAdvancing(),
      order: this.options.order,
      createStuckError: () => this.#createStuckError(),
    });
    record.stop();
  }

  #advanceToRest(): Promise<void> {
    return this.#advance(() => false);
  }

  #begin(): void {
    const { thread } = this;
    const { startAt } = this.options;
    const input = this.#toGraphInput();
    this.#startProcess((graph, { store, world }) => {
      const runOptions = { ...this.#getRunOptions(), thread, store, world };
      return startAt === undefined ? run(graph, { ...runOptions, ...input }) : resume(graph, runOptions);
    });
  }

  /** Converts the text of a user message to the input of an agent. */
  #toGraphInput(): { readonly input?: object } {
    const { input } = this.options;
    if (input === undefined || this.#graph.toInput === undefined || !isText(input)) return { input: input as object };
    return { input: this.#graph.toInput(input as never) };
  }

  /** Returns the options that each process passes to its run. */
  #getRunOptions(): Pick<DriverOptions, "codec"> {
    const { input, model, clock, seed, store, thread, startAt, order, ...runOptions } = this.options;
    return runOptions;
  }

  #startProcess(startHandle: (graph: Graph, process: ProcessRun) => RunHandle<unknown>): void {
    const { record } = this;
    const current = this.#process;
    const { isAlive } = current;
    const receive = (entry: TraceEntry): void => {
      if (isAlive()) record.receive(entry);
    };
    const instrumented = instrument(this.#graph as Graph, {
      isAlive,
      onToolExecuted: (entry) => record.receive(entry),
      onEntry: receive,
      model: this.#model,
      gate: (point) => this.#waitForGate(point, current),
    });
    record.start();
    const handle = startHandle(instrumented, current);
    this.#handle = handle;
    handle.on(receive);
    handle.result.then(
      (end) => {
        if (isAlive()) record.finish(end);
      },
      (error: unknown) => {
        if (isAlive()) record.fail(error);
      },
    );
  }

  /** Blocks a body until the release of the process, and, with `everyOrder`, until the order releases the body. */
  #waitForGate(point: string, { isAlive, waitForRelease }: ProcessRun): Promise<void> | undefined {
    const { order } = this.options;
    const release = waitForRelease();
    if (order === undefined) return release;
    return release === undefined ? order.gate(point, isAlive) : release.then(() => order.gate(point, isAlive));
  }

  #createTargetCheck(target: StopTarget): () => boolean {
    if (typeof target === "function") return target;
    if (typeof target === "string") return () => isInState(this.record.value, target);
    return () => listTags(this.#graph, this.record.value).includes(target.tag);
  }

  #checkAlive(): void {
    if (this.record.status === "crashed")
      throw new Error("testRun: expected a living process, got a crashed process. Use resume() to continue the run.");
  }

  #createStuckError(): Error {
    const state = JSON.stringify(this.record.value);
    return new Error(
      `the run of graph "${this.#graph.name}" cannot advance: it is in ${state}, with no timer and no pending work.\nThe path: ${formatPath(this.trace)}`,
    );
  }
}

function formatTarget(target: StopTarget): string {
  if (typeof target === "function") return "the condition of the test";
  return typeof target === "string" ? `"${target}"` : `a state with the tag "${target.tag}"`;
}

/** Returns true if the run rests in every state of the graph with this tag. */
function isRestTag(graph: Graph, { tag }: { readonly tag: string }): boolean {
  return !isDurableMachine(graph) && (tag === "waiting" || tag === "failed");
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
