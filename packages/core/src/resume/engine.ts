/**
 * Engine: a process that serves threads. It resumes crashed runs, fires due timers, starts queued runs, and on stop
 * drains its runs to a checkpoint. Between scans the engine sleeps until the next due time, and polls for work added
 * by other processes.
 */
import { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { checkCount, checkFunction, listOptionNames } from "../base/options.ts";
import type { Log } from "../base/world.ts";
import type { Graph } from "../compile/graph.ts";
import type { GraphDefinition, GraphTypes } from "../define/graph.ts";
import { copyModelsOption } from "../model/model-source.ts";
import { startRun } from "../run/run.ts";
import { checkRunOptions } from "../run/session/options/check-run-options.ts";
import type { ResumeOptions, RunHandle, RunOf, RunOptions } from "../run/session/options/options.ts";
import { getWorld } from "../run/task/open-session.ts";
import { createEngineWork, type EngineState } from "./engine-work.ts";
import { createNotifier } from "./notifications/notifier.ts";
import { type Notify, type NotifyOptions, resolveNotifyOptions } from "./notifications/notify-options.ts";
import { resumeRun } from "./resume.ts";
import type { ScheduleGuard } from "./schedules/schedule-guard.ts";
import { checkServing, getSharedOptions, getVersionOptions, type ServingOptions, servingNames } from "./serving.ts";

/** Options of `engine`. */
export interface EngineOptions extends ServingOptions {
  /**
   * Maximum number of concurrent runs started by the engine; user-written machines do not count, since they mostly
   * wait. Default 64.
   */
  readonly concurrency?: number;
  /** Poll interval for work added by other processes, in milliseconds. Default 1,000. */
  readonly pollMs?: number;
  /**
   * Called with each run that starts or resumes here, before its first event: runs claimed by the engine, and runs of
   * its `run` and `resume`. A server can stream the events of these runs.
   */
  readonly onRun?: (run: RunHandle<unknown>) => void;
  /**
   * Tells a person or another system about runs that failed, were parked, or are in doubt, and with
   * `waitingLongerThanMs` about interrupts that are open for too long. From the first start of such an engine on, each
   * process of the store writes a notification with the end of the run, in a single commit, and any engine with
   * `notify` delivers it at least once. A function, or its options. Default: none.
   */
  readonly notify?: Notify | NotifyOptions;
  /**
   * Receives the log of the engine and of its runs, such as `console.error`: runs that cannot start, failed runs, late
   * results, warnings. Default: the log of `world`, which is silent without one.
   */
  readonly log?: Log;
}

type EngineProvided = "store" | "secrets" | "relay" | "world" | "codec";

/**
 * Process that serves threads: recovers runs, fires timers, expires interrupts, starts queued runs, drains on stop.
 */
export interface Engine {
  /** Starts serving: resumes crashed runs, fires due timers, starts queued runs. Throws errors of the store. */
  start(): Promise<void>;
  /**
   * Starts no more runs and lets every active run finish its superstep; resolves when all runs are saved. `now` also
   * aborts their signals, even during an earlier `stop` call; `graceMs` aborts after that many milliseconds. A stopped
   * engine accepts runs again after `start`.
   */
  stop(options?: { readonly now?: boolean; readonly graceMs?: number }): Promise<void>;
  /** Same as `run`, with the store, secrets, relay and world of the engine. Throws `engine_stopped`. */
  run<Types extends GraphTypes>(graph: Graph<Types>, options: Omit<RunOptions<Types>, EngineProvided>): RunOf<Types>;
  /** Same as `resume`, with the store, secrets, relay and world of the engine. Throws `engine_stopped`. */
  resume<Types extends GraphTypes>(
    graph: Graph<Types>,
    options: Omit<ResumeOptions<Types>, EngineProvided>,
  ): RunOf<Types>;
}

const names = [
  ...servingNames,
  ...listOptionNames<Omit<EngineOptions, keyof ServingOptions>>({
    concurrency: true,
    pollMs: true,
    onRun: true,
    notify: true,
    log: true,
  }),
];

const optionsOfEngines = new WeakMap<Engine, EngineOptions>();
const statesOfEngines = new WeakMap<Engine, () => EngineState>();

/** Returns the state of an engine: a server that is ready has an engine that serves. Throws `invalid_option`. */
export function getEngineState(engine: Engine): EngineState {
  const getState = statesOfEngines.get(engine);
  if (getState !== undefined) return getState();
  throw createForeignEngineError("getEngineState", engine);
}

/** Returns the options of an engine, for servers that show its graphs and read its store. Throws `invalid_option`. */
export function getEngineOptions(engine: Engine): EngineOptions {
  const options = optionsOfEngines.get(engine);
  if (options !== undefined) return options;
  throw createForeignEngineError("getEngineOptions", engine);
}

function createForeignEngineError(where: string, got: unknown): StatewrightError {
  return invalidOption({
    where,
    expected: "an engine of this copy of Statewright",
    got,
    fix: "Pass the result of engine()",
  });
}

const guardsOfEngines = new WeakMap<Engine, Set<ScheduleGuard>>();

/**
 * Adds a guard to the schedules that an engine fires: a server asks for the rights of their makers. Returns the function
 * that removes the guard. Another engine of the store has its own guards. Throws `invalid_option`.
 */
export function guardSchedules(engine: Engine, guard: ScheduleGuard): () => void {
  checkFunction("guardSchedules", { guard });
  const guards = guardsOfEngines.get(engine);
  if (guards === undefined)
    throw invalidOption({
      ...{ where: "guardSchedules", expected: "an engine of this copy of Statewright", got: engine },
      fix: "Pass the result of engine()",
    });
  guards.add(guard);
  return () => void guards.delete(guard);
}

/** Creates an engine for the threads of a store; idle until `start`. Throws `invalid_option`, `missing_store`. */
export function engine(given: EngineOptions): Engine {
  checkServing("engine", given, names);
  checkFunction("engine", { log: given.log });
  const options = addLog(given);
  const { store, concurrency = 64, pollMs = 1_000, onRun, notify } = options;
  checkCount("engine", { concurrency: concurrency === Number.POSITIVE_INFINITY ? undefined : concurrency, pollMs });
  checkFunction("engine", { onRun });
  const world = getWorld(options);
  const notifier =
    notify === undefined ? undefined : createNotifier({ store, world, options: resolveNotifyOptions(notify) });
  let state: EngineState = "idle";
  let stopping: Promise<void> | undefined;
  const guards = new Set<ScheduleGuard>();
  const parts = { options, world, concurrency, pollMs, onRun, notifier, guards };
  const work = createEngineWork({ ...parts, getState: () => state });
  const { host, track } = work;

  async function stopServing(): Promise<void> {
    state = "stopping";
    await work.stop();
    state = "stopped";
    stopping = undefined;
  }

  /** An engine that was never started accepts runs; an engine that stops or has stopped does not. */
  function checkNotStopped(): void {
    if (state === "stopping" || state === "stopped") throw createStoppedError(state);
  }

  const created: Engine = {
    start: async () => {
      await stopping;
      if (state === "serving") return;
      state = "serving";
      work.prepare();
      try {
        await work.start();
      } catch (error) {
        await stopServing();
        throw error;
      }
    },
    stop: async ({ now = false, graceMs } = {}) => {
      if (state === "stopped") return;
      stopping ??= stopServing();
      if (now) work.abort();
      const cancelGrace = graceMs === undefined ? undefined : world.schedule.after(graceMs, work.abort);
      await stopping;
      cancelGrace?.();
    },
    run: (graph, runOptions) => {
      checkNotStopped();
      const all = addEngineOptions(options, graph, runOptions);
      checkRunOptions("run", graph, all);
      const handle = startRun({ graph: graph as Graph, options: all as RunOptions<GraphTypes>, host });
      track(handle);
      return handle as RunHandle<never, never, never>;
    },
    resume: (graph, runOptions) => {
      checkNotStopped();
      const all = addEngineOptions(options, graph, runOptions);
      checkRunOptions("resume", graph, all);
      const handle = resumeRun({ graph: graph as Graph, options: all as ResumeOptions<GraphTypes>, host });
      track(handle);
      return handle as RunHandle<never, never, never>;
    },
  };
  optionsOfEngines.set(created, options);
  guardsOfEngines.set(created, guards);
  statesOfEngines.set(created, () => state);
  return created;
}

/** Returns the options with the log as a part of their world. */
function addLog(options: EngineOptions): EngineOptions {
  if (options.log === undefined) return options;
  const { clock, random, schedule } = getWorld(options);
  return { ...options, world: { clock, random, schedule, log: options.log } };
}

/** Adds the options of the engine to the options of a run. */
function addEngineOptions<Given extends object>(options: EngineOptions, graph: GraphDefinition, given: Given) {
  return {
    ...getVersionOptions(options, graph),
    ...copyModelsOption(options),
    ...given,
    ...getSharedOptions(options),
  };
}

function createStoppedError(state: "stopping" | "stopped"): StatewrightError {
  return new StatewrightError("engine_stopped", {
    what: state === "stopping" ? "the engine is stopping and starts no more runs" : "the engine has stopped",
    next: "Pass the input to another engine, or start this engine again after it has stopped",
  });
}
