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
import { resolveWaitingRuns } from "../run/queue.ts";
import { startRun } from "../run/run.ts";
import { createSlots } from "../run/session/concurrency.ts";
import { checkRunOptions } from "../run/session/options/check-run-options.ts";
import type { ResumeOptions, RunHandle, RunOf, RunOptions } from "../run/session/options/options.ts";
import { getWorld } from "../run/task/open-session.ts";
import { createActiveRuns } from "./active-runs.ts";
import { createClaimScanner } from "./claimed-work.ts";
import { createCurrentWork } from "./current-work.ts";
import { createHaltedRuns } from "./halted-runs.ts";
import { createNotifier } from "./notifications/notifier.ts";
import { type Notify, type NotifyOptions, resolveNotifyOptions } from "./notifications/notify-options.ts";
import { createPendingWorkScanner, type PendingWork, type ScanExtent } from "./pending-work.ts";
import { finishRequestedRuns } from "./requested-runs.ts";
import { resumeRun } from "./resume.ts";
import { createScanSchedule } from "./scan-schedule.ts";
import { createNextSlot } from "./schedules/next-slot.ts";
import { createDueStarter } from "./schedules/start-due-runs.ts";
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
  /**
   * Tells a person or another system about runs that failed, were parked, or are in doubt, and with
   * `waitingLongerThanMs` about interrupts that are open for too long. From the first start of such an engine on, each
   * process of the store writes a notification with the end of the run, in one commit, and any engine with `notify`
   * delivers it at least once. A function, or its options. Default: none.
   */
  readonly notify?: Notify | NotifyOptions;
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
  }),
];

/** Creates an engine for the threads of a store; idle until `start`. Throws `invalid_option`, `missing_store`. */
export function engine(options: EngineOptions): Engine {
  checkServing("engine", options, names);
  const { store, concurrency = 64, pollMs = 1_000, onRun, notify } = options;
  checkCount("engine", { concurrency: concurrency === Number.POSITIVE_INFINITY ? undefined : concurrency, pollMs });
  checkFunction("engine", { onRun });
  const world = getWorld(options);
  const slots = createSlots(concurrency);
  const notifier =
    notify === undefined ? undefined : createNotifier({ store, world, options: resolveNotifyOptions(notify) });
  const currentWork = createCurrentWork();
  let state: "idle" | "serving" | "stopping" | "stopped" = "idle";
  let stopping: Promise<void> | undefined;
  const isServing = (): boolean => state === "serving";

  const nextSlot = createNextSlot({ store, world, graphs: options.graphs.map(({ name }) => name) });
  const startDueRuns = createDueStarter({ store, world, graphs: options.graphs, isServing });
  const scanStore = async (extent: ScanExtent): Promise<void> => {
    if (extent === "all") {
      await nextSlot.startScan();
      notifier?.request();
      await finishRequestedRuns(options, isClaimed);
      await startDueRuns();
    }
    const threads = [...requestedThreads];
    await scanner.scan(extent, accept);
    if (!scanner.hasMore && threads.length > 0) world.schedule.soon(() => resolveUnclaimed(threads));
  };
  const schedule = createScanSchedule({ store, world, pollMs, nextSlot, isServing, scanStore });
  const halted = createHaltedRuns({ store, world, firstDelayMs: pollMs });
  const activeRuns = createActiveRuns({
    halted,
    world,
    onRun,
    isStopping: () => state === "stopping",
    onEnd: (result) => {
      if (result?.status !== "done") notifier?.request();
      // Only a run at rest has armed timers.
      if (isServing() && (result?.status === "waiting" || result?.status === "paused")) schedule.requestAlarm();
    },
  });
  const track = (handle: RunHandle<unknown>): void => void activeRuns.track(handle);
  const { claimRuns } = store;
  /** Threads with a queued run that this engine has not claimed yet. */
  const requestedThreads = new Set<string>();
  const claimLater = (thread: string): void => {
    requestedThreads.add(thread);
    schedule.requestQueue();
  };
  const requestRuns = claimRuns === undefined ? undefined : claimLater;
  const host = createHost(options, { canStart: isServing, onLaunch: track, requestRuns });
  const addEngineOptions = <Given extends object>(graph: GraphDefinition, given: Given) => ({
    ...getVersionOptions(options, graph),
    ...copyModelsOption(options),
    ...given,
    ...getSharedOptions(options),
  });
  const isClaimed = currentWork.hasThread;
  const listHalted = (): Promise<readonly RunRow[]> => halted.list(isClaimed);
  const countFreeSlots = (): number => concurrency - currentWork.countBounded();
  const parts = { options, host, world, isClaimed, listHalted, track };
  const scanner =
    claimRuns === undefined
      ? createPendingWorkScanner(parts)
      : createClaimScanner({ ...parts, claimRuns, countFreeSlots });

  let unwatch: (() => void) | undefined;
  /** Scans when another caller or process adds work. The runs of this engine read their own inputs. */
  function watchStore(): void {
    unwatch ??= store.watch?.(
      (thread) => {
        if (!isClaimed(thread) && currentWork.size() < eagerScanBelow) schedule.hint(thread);
      },
      { kinds: ["input"] },
    );
  }

  /** Callers that wait here for a run of a thread do not wait for the process that has claimed the thread. */
  function resolveUnclaimed(threads: readonly string[]): void {
    for (const thread of threads) {
      requestedThreads.delete(thread);
      resolveWaitingRuns(store, thread);
    }
  }

  /** Performs the work of a thread, when a slot is free; an engine that stops releases its claim. */
  function accept(work: PendingWork): Promise<void> | undefined {
    if (!isServing()) return work.cancel?.();
    currentWork.add(work);
    const perform = async (): Promise<void> => {
      currentWork.start(work);
      for (const start of work.starters) await startAndAwait(work.thread, start);
      currentWork.delete(work);
      if (!scanner.hasMore || !isServing()) return;
      if (claimRuns !== undefined) return schedule.requestQueue();
      if (currentWork.size() >= eagerScanBelow) return;
      scanner.hasMore = false;
      schedule.request();
    };
    if (work.isBounded) slots.add(perform);
    else void perform();
    return undefined;
  }

  /** Releases the claims of runs that have not started. */
  async function cancelUnstarted(): Promise<void> {
    slots.clear();
    await Promise.all(currentWork.clear().map((work) => work.cancel?.()));
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

  function abort(): void {
    activeRuns.abort();
    notifier?.abort();
  }

  async function stopServing(): Promise<void> {
    state = "stopping";
    unwatch?.();
    unwatch = undefined;
    schedule.cancel();
    const notified = notifier?.stop();
    const cancelled = cancelUnstarted();
    activeRuns.drain();
    await schedule.waitForScan();
    await cancelled;
    await activeRuns.waitUntilEmpty();
    await notified;
    schedule.cancel();
    state = "stopped";
    stopping = undefined;
  }

  return {
    start: async () => {
      await stopping;
      if (isServing()) return;
      state = "serving";
      watchStore();
      scanner.reset();
      options.relay?.prepare?.();
      try {
        await notifier?.start();
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
      if (now) abort();
      const cancelGrace = graceMs === undefined ? undefined : world.schedule.after(graceMs, abort);
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

/** Below this number of threads with work, an engine scans for more work before the next poll. */
const eagerScanBelow = 250;

function createStoppedError(state: "stopping" | "stopped"): StatewrightError {
  return new StatewrightError("engine_stopped", {
    what: state === "stopping" ? "the engine is stopping and starts no more runs" : "the engine has stopped",
    next: "Pass the input to another engine, or start this engine again after it has stopped",
  });
}
