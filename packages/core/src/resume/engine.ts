/**
 * Engine: a process that serves threads. It resumes crashed runs, fires due timers, starts queued runs, and on stop
 * drains its runs to a checkpoint. Between scans the engine sleeps until the next due time, and polls for work added
 * by other processes.
 */
import { StatewrightError, toErrorRecord } from "../base/errors.ts";
import { checkCount, checkFunction, listOptionNames } from "../base/options.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import type { Graph } from "../compile/graph.ts";
import type { GraphDefinition, GraphTypes } from "../define/graph.ts";
import { copyModelsOption } from "../model/model-source.ts";
import { startRun } from "../run/run.ts";
import { createSlots } from "../run/session/concurrency.ts";
import { checkRunOptions } from "../run/session/options/check-run-options.ts";
import type { ResumeOptions, RunHandle, RunOf, RunOptions } from "../run/session/options/options.ts";
import { getWorld } from "../run/task/open-session.ts";
import { createActiveRuns } from "./active-runs.ts";
import { createHaltedRuns } from "./halted-runs.ts";
import { createPendingWorkScanner, type PendingWork } from "./pending-work.ts";
import { resumeRun } from "./resume.ts";
import { createScanSchedule } from "./scan-schedule.ts";
import {
  checkServing,
  createHost,
  getSharedOptions,
  getVersionOptions,
  type ServingOptions,
  servingNames,
} from "./serving.ts";

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
  ...listOptionNames<Omit<EngineOptions, keyof ServingOptions>>({ concurrency: true, pollMs: true, onRun: true }),
];

/** Creates an engine for the threads of a store; idle until `start`. Throws `invalid_option`, `missing_store`. */
export function engine(options: EngineOptions): Engine {
  checkServing("engine", options, names);
  const { store, concurrency = 64, pollMs = 1_000, onRun } = options;
  checkCount("engine", { concurrency: concurrency === Number.POSITIVE_INFINITY ? undefined : concurrency, pollMs });
  checkFunction("engine", { onRun });
  const world = getWorld(options);
  const graphs = options.graphs.map(({ name }) => name);
  const slots = createSlots(concurrency);
  /** Threads claimed by the engine: active, or waiting for a slot. */
  const claimedThreads = new Set<string>();
  let state: "idle" | "serving" | "stopping" | "stopped" = "idle";
  let stopping: Promise<void> | undefined;
  const isServing = (): boolean => state === "serving";

  const schedule = createScanSchedule({ store, world, pollMs, graphs, isServing, scanStore });
  const halted = createHaltedRuns({ store, world, firstDelayMs: pollMs });
  const activeRuns = createActiveRuns({
    halted,
    world,
    onRun,
    isStopping: () => state === "stopping",
    onEnd: () => {
      if (isServing()) void schedule.scheduleAlarm();
    },
  });
  const track = (handle: RunHandle<unknown>): void => void activeRuns.track(handle);
  const host = createHost(options, { canStart: isServing, onLaunch: track });
  const addEngineOptions = <Given extends object>(graph: GraphDefinition, given: Given) => ({
    ...getVersionOptions(options, graph),
    ...copyModelsOption(options),
    ...given,
    ...getSharedOptions(options),
  });
  const isClaimed = (thread: string): boolean => claimedThreads.has(thread);
  const listHalted = (): Promise<readonly RunRow[]> => halted.list(isClaimed);
  const scanner = createPendingWorkScanner({ options, host, world, isClaimed, listHalted, track });

  async function scanStore(): Promise<void> {
    for (const [thread, work] of await scanner.scan()) if (isServing()) claimThread(thread, work);
  }

  /** Runs the pending work of a thread, when a slot is free. */
  function claimThread(thread: string, { starters, isBounded }: PendingWork): void {
    claimedThreads.add(thread);
    const work = async (): Promise<void> => {
      for (const start of starters) await startAndAwait(thread, start);
      claimedThreads.delete(thread);
      if (!scanner.hasMore || !isServing() || claimedThreads.size >= eagerScanBelow) return;
      scanner.hasMore = false;
      schedule.request();
    };
    if (isBounded) slots.add(work);
    else void work();
  }

  async function startAndAwait(thread: string, start: PendingWork["starters"][number]): Promise<void> {
    try {
      const handle = isServing() ? await start() : undefined;
      if (handle !== undefined) await activeRuns.track(handle);
    } catch (error) {
      world.log("warn", "a run could not be started", { thread, error: toErrorRecord(error) });
    }
  }

  /** An engine that was never started accepts runs; an engine that stops or has stopped does not. */
  function checkNotStopped(): void {
    if (state === "stopping" || state === "stopped") throw createStoppedError(state);
  }

  async function stopServing(): Promise<void> {
    state = "stopping";
    slots.clear();
    claimedThreads.clear();
    schedule.cancel();
    activeRuns.drain();
    await schedule.waitForScan();
    await activeRuns.waitUntilEmpty();
    schedule.cancel();
    state = "stopped";
    stopping = undefined;
  }

  return {
    start: async () => {
      await stopping;
      if (isServing()) return;
      state = "serving";
      try {
        await schedule.scan();
        await schedule.schedulePoll();
      } catch (error) {
        await stopServing();
        throw error;
      }
    },
    stop: async ({ now = false, graceMs } = {}) => {
      if (state === "stopped") return;
      stopping ??= stopServing();
      if (now) activeRuns.abort();
      const cancelGrace = graceMs === undefined ? undefined : world.schedule.after(graceMs, activeRuns.abort);
      await stopping;
      cancelGrace?.();
    },
    run: (graph, runOptions) => {
      checkNotStopped();
      const all = addEngineOptions(graph, runOptions);
      checkRunOptions("run", graph, all);
      const handle = startRun({ graph: graph as Graph, options: all as RunOptions<GraphTypes>, host });
      track(handle);
      return handle as RunHandle<never, never, never>;
    },
    resume: (graph, runOptions) => {
      checkNotStopped();
      const all = addEngineOptions(graph, runOptions);
      checkRunOptions("resume", graph, all);
      const handle = resumeRun({ graph: graph as Graph, options: all as ResumeOptions<GraphTypes>, host });
      track(handle);
      return handle as RunHandle<never, never, never>;
    },
  };
}

/** Below this number of claimed threads, an engine scans for more work before the next poll. */
const eagerScanBelow = 250;

function createStoppedError(state: "stopping" | "stopped"): StatewrightError {
  return new StatewrightError("engine_stopped", {
    what: state === "stopping" ? "the engine is stopping and starts no more runs" : "the engine has stopped",
    next: "Pass the input to another engine, or start this engine again after it has stopped",
  });
}
