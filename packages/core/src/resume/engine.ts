/**
 * Engine: a process that serves threads. It resumes crashed runs, fires due timers, starts queued runs, and on stop
 * drains its runs to a checkpoint. Between scans the engine sleeps until the next due time, and polls for work added
 * by other processes.
 */
import { isStatewrightError, StatewrightError, toErrorRecord } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import { listOptionNames } from "../base/options.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import { engineStopReason } from "../checkpoint/claimable.ts";
import type { TimerRow } from "../checkpoint/timer.ts";
import type { Graph } from "../compile/graph.ts";
import { getPlan } from "../compile/plan.ts";
import type { GraphTypes } from "../define/graph.ts";
import { getProgram } from "../run/begin.ts";
import { pauseRun } from "../run/launch.ts";
import { type CallerWithStore, startNextQueued } from "../run/queue.ts";
import { startRun } from "../run/run.ts";
import { createSlots } from "../run/session/concurrency.ts";
import { checkRunOptions } from "../run/session/options/check-run-options.ts";
import type { ResumeOptions, RunHandle, RunOptions, RunResult } from "../run/session/options/options.ts";
import { getWorld } from "../run/task/open-session.ts";
import { resumeRun } from "./resume.ts";
import {
  checkCount,
  checkServing,
  continueRun,
  createCaller,
  createHost,
  createScanner,
  getVersionOptions,
  type ServingOptions,
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

type EngineProvided = "store" | "secrets" | "world" | "codec";

/**
 * Process that serves threads: recovers runs, fires timers, expires interrupts, starts queued runs, drains on stop.
 */
export interface Engine {
  /** Starts serving: resumes crashed runs, fires due timers, starts queued runs. Throws errors of the store. */
  start(): Promise<void>;
  /**
   * Starts no more runs and lets every active run finish its superstep; resolves when all runs are saved. `now` also
   * aborts their signals, even during an earlier `stop` call; `graceMs` aborts after that many milliseconds.
   */
  stop(options?: { readonly now?: boolean; readonly graceMs?: number }): Promise<void>;
  /** Same as `run`, with the store, secrets and world of the engine. Throws `engine_stopped`. */
  run<Types extends GraphTypes>(
    graph: Graph<Types>,
    options: Omit<RunOptions<Types>, EngineProvided>,
  ): RunHandle<Types["result"], Types["output"]>;
  /** Same as `resume`, with the store, secrets and world of the engine. Throws `engine_stopped`. */
  resume<Types extends GraphTypes>(
    graph: Graph<Types>,
    options: Omit<ResumeOptions<Types>, EngineProvided>,
  ): RunHandle<Types["result"], Types["output"]>;
}

const names = listOptionNames<EngineOptions>({
  store: true,
  graphs: true,
  migrations: true,
  context: true,
  secrets: true,
  world: true,
  codec: true,
  parkAfter: true,
  concurrency: true,
  pollMs: true,
  onRun: true,
});

/** Creates an engine for the threads of a store; idle until `start`. Throws `invalid_option`, `missing_store`. */
export function engine(options: EngineOptions): Engine {
  checkServing("engine", options, names);
  const { store, secrets, world: givenWorld, codec, concurrency = 64, pollMs = 1_000, parkAfter, onRun } = options;
  checkCount("engine", "concurrency", concurrency === Number.POSITIVE_INFINITY ? undefined : concurrency);
  checkCount("engine", "pollMs", pollMs);
  if (onRun !== undefined && typeof onRun !== "function")
    throw new StatewrightError("invalid_option", {
      what: `engine: onRun must be a function, got ${describeValue(onRun)}`,
      next: "Pass a function that takes the handle of a run",
    });
  const world = getWorld(options);
  const engineOptions = {
    store,
    ...(secrets === undefined ? {} : { secrets }),
    ...(givenWorld === undefined ? {} : { world: givenWorld }),
    ...(codec === undefined ? {} : { codec }),
  };
  const slots = createSlots(concurrency);
  const activeRuns = new Map<RunHandle<unknown>, Promise<void>>();
  /** Threads claimed by the engine: active, or waiting for a slot. */
  const claimedThreads = new Set<string>();
  /** Runs logged as skipped: one log entry per run while the run is found. */
  let skippedRuns = new Set<string>();
  /** Runs found since the last complete scan. */
  const foundRuns = new Set<string>();
  /** Parked runs already tried with the current graphs. */
  const triedRuns = new Set<string>();
  /**
   * Runs stopped by a store that accepts no writes, by thread: even that stop may be unsaved, so that the row reads
   * `running`.
   */
  const haltedByThread = new Map<string, string>();
  let state: "idle" | "serving" | "stopping" = "idle";
  let activeScan: Promise<void> | undefined;
  let rescan = false;
  /** True when the last scan was incomplete: the next scan starts as soon as this process has capacity. */
  let hasMore = false;
  const finder = createScanner(store);
  let stopping: Promise<void> | undefined;
  let cancelAlarm: () => void = ignore;
  let cancelPoll: () => void = ignore;
  const host = createHost(options, {
    canStart: () => state === "serving",
    onLaunch: (handle) => {
      track(handle);
    },
  });

  function isServing(): boolean {
    return state === "serving";
  }

  /** Tracks a run until it ends or suspends. Its failure is reported by the run itself. */
  function track(handle: RunHandle<unknown>): Promise<void> {
    const known = activeRuns.get(handle);
    if (known !== undefined) return known;
    const ended = handle.result
      .then(recordHalt, (error: unknown) => {
        if (isStatewrightError(error, "thread_busy")) return;
        world.log("warn", "a run failed", { thread: handle.thread, run: handle.id, error: toErrorRecord(error) });
      })
      .then(() => {
        activeRuns.delete(handle);
        if (isServing()) void scheduleAlarm();
      });
    activeRuns.set(handle, ended);
    if (state === "stopping") handle.drain(engineStopReason);
    notifyOnRun(handle);
    return ended;
  }

  function recordHalt(result: RunResult<unknown>): void {
    const { status, run, thread } = result;
    if (status === "paused" && haltCodes.includes(result.cause.code)) haltedByThread.set(thread, run);
  }

  /** Lists halted runs whose row still reads `running`: such runs are resumed like crashed runs. */
  async function listHaltedRuns(): Promise<readonly RunRow[]> {
    const rows = [...haltedByThread].map(async ([thread, id]) => {
      const running = await store.runs({ thread, status: "running" });
      if (!claimedThreads.has(thread)) haltedByThread.delete(thread);
      return running.filter((row) => row.id === id);
    });
    return (await Promise.all(rows)).flat();
  }

  /** Calls `onRun`; errors of the callback do not affect the run. */
  function notifyOnRun(handle: RunHandle<unknown>): void {
    const logFailure = (error: unknown): void =>
      world.log("error", "engine: onRun threw", { thread: handle.thread, error: toErrorRecord(error) });
    try {
      const returned: unknown = onRun?.(handle);
      if (returned instanceof Promise) returned.catch(logFailure);
    } catch (error) {
      logFailure(error);
    }
  }

  function trackRun<Run extends RunHandle<unknown>>(handle: Run): Run {
    void track(handle);
    return handle;
  }

  /** Runs the pending work of a thread, one item after the other. */
  function runPendingWork(thread: string, { starters, isBounded }: PendingWork): void {
    claimedThreads.add(thread);
    const work = async (): Promise<void> => {
      for (const each of starters) {
        try {
          const handle = isServing() ? await each() : undefined;
          if (handle !== undefined) await track(handle);
        } catch (error) {
          world.log("warn", "a run could not be started", { thread, error: toErrorRecord(error) });
        }
      }
      claimedThreads.delete(thread);
      if (hasMore && isServing() && claimedThreads.size < eagerScanBelow) {
        hasMore = false;
        scanAndSchedule();
      }
    };
    if (isBounded) slots.add(work);
    else void work();
  }

  /** Scans the store once for pending work. */
  async function scanStore(): Promise<void> {
    const found = await finder.next();
    const { queued, orphaned } = found;
    hasMore = found.more;
    const parked = found.parked.filter(({ id }) => !triedRuns.has(id));
    const due = [...(await listDueRuns(await store.timers({ dueBy: world.clock.now() }))), ...(await listHaltedRuns())];
    for (const { id } of [...queued, ...orphaned, ...parked, ...due]) foundRuns.add(id);
    if (!found.more) {
      skippedRuns = new Set([...skippedRuns].filter((id) => foundRuns.has(id)));
      foundRuns.clear();
    }
    const threads = new Map<string, PendingWork>();
    const serve = (row: RunRow, begin: (caller: CallerWithStore) => Promise<RunHandle<unknown> | undefined>): void => {
      if (claimedThreads.has(row.thread) || skippedRuns.has(row.id)) return;
      const caller = createCaller(options, host, row);
      if (caller === undefined) {
        skippedRuns.add(row.id);
        return;
      }
      const { starters: before } = threads.get(row.thread) ?? { starters: [] };
      const isBounded = getProgram(getPlan(caller.graph)).isBounded;
      threads.set(row.thread, { starters: [...before, () => begin(caller)], isBounded });
    };
    // Queued runs first: a queued run may pre-empt the crashed run.
    for (const row of queued) serve(row, (caller) => startNextQueued(caller, store, row.thread));
    for (const row of orphaned) serve(row, async (caller) => trackRun(continueRun(caller, row, parkAfter)));
    for (const row of parked)
      serve(row, async (caller) => {
        triedRuns.add(row.id);
        return trackRun(continueRun(caller, row, parkAfter));
      });
    for (const row of due)
      serve(row, async (caller) => {
        const { thread, branch } = row;
        return trackRun(resumeRun({ ...caller, options: { ...caller.options, thread, branch } }));
      });
    for (const [thread, due] of threads) if (isServing()) runPendingWork(thread, due);
  }

  /** Lists the runs with a due timer, each once. A run paused by a user stays paused. */
  async function listDueRuns(timers: readonly TimerRow[]): Promise<readonly RunRow[]> {
    const branches = new Map(timers.filter(canWakeRun).map((row) => [`${row.thread} ${getBranch(row)}`, row]));
    const rows = await Promise.all(
      [...branches.values()].map(async (timer) => {
        const waiting = await store.runs({ thread: timer.thread, status: "waiting" });
        return waiting.filter(({ branch }) => branch === getBranch(timer));
      }),
    );
    return rows.flat();
  }

  /** Scans serially: a request during a scan starts another scan afterwards. */
  function scanSerially(): Promise<void> {
    rescan = true;
    activeScan ??= (async () => {
      try {
        while (rescan && isServing()) {
          rescan = false;
          await scanStore();
        }
      } finally {
        activeScan = undefined;
      }
    })();
    return activeScan;
  }

  function scanAndSchedule(): void {
    scanSerially()
      .catch((error: unknown) => world.log("error", "the store could not be scanned", { error: toErrorRecord(error) }))
      .then(() => (isServing() ? schedulePoll() : undefined), ignore);
  }

  async function schedulePoll(): Promise<void> {
    cancelPoll();
    cancelPoll = world.schedule.after(pollMs, scanAndSchedule);
    await scheduleAlarm();
  }

  /** Sets the alarm for the next timer. Timers already due on threads busy elsewhere are retried by the next poll. */
  async function scheduleAlarm(): Promise<void> {
    try {
      const now = world.clock.now();
      const next = (await store.timers({ limit: 100 })).find(({ dueAt }) => dueAt > now);
      cancelAlarm();
      cancelAlarm = ignore;
      if (next !== undefined && isServing()) cancelAlarm = world.schedule.at(next.dueAt, scanAndSchedule);
    } catch (error) {
      world.log("error", "the timers could not be read", { error: toErrorRecord(error) });
    }
  }

  function abortAll(): void {
    for (const handle of activeRuns.keys()) pauseRun(handle, engineStopReason);
  }

  async function stopServing(): Promise<void> {
    state = "stopping";
    slots.clear();
    claimedThreads.clear();
    cancelPoll();
    cancelAlarm();
    for (const handle of activeRuns.keys()) handle.drain(engineStopReason);
    await activeScan?.catch(ignore);
    while (activeRuns.size > 0) await Promise.all(activeRuns.values());
    cancelPoll();
    cancelAlarm();
    state = "idle";
    stopping = undefined;
  }

  function checkNotStopping(): void {
    if (state !== "stopping") return;
    throw new StatewrightError("engine_stopped", {
      what: "the engine is stopping and starts no more runs",
      next: "Pass the input to another engine, or start this engine again after it has stopped",
    });
  }

  return {
    start: async () => {
      await stopping;
      if (isServing()) return;
      state = "serving";
      try {
        await scanSerially();
        await schedulePoll();
      } catch (error) {
        await stopServing();
        throw error;
      }
    },
    stop: async ({ now = false, graceMs } = {}) => {
      if (state === "idle" && activeRuns.size === 0) return;
      stopping ??= stopServing();
      if (now) abortAll();
      const cancelGrace = graceMs === undefined ? ignore : world.schedule.after(graceMs, abortAll);
      await stopping;
      cancelGrace();
    },
    run: (graph, given) => {
      checkNotStopping();
      const all = { ...getVersionOptions(options, graph), ...given, ...engineOptions };
      checkRunOptions("run", graph, all);
      const handle = startRun({ graph: graph as Graph, options: all as RunOptions<GraphTypes>, host });
      return trackRun(handle) as RunHandle<never, never>;
    },
    resume: (graph, given) => {
      checkNotStopping();
      const all = { ...getVersionOptions(options, graph), ...given, ...engineOptions };
      checkRunOptions("resume", graph, all);
      const handle = resumeRun({ graph: graph as Graph, options: all as ResumeOptions<GraphTypes>, host });
      return trackRun(handle) as RunHandle<never, never>;
    },
  };
}

/** Pause codes of runs whose store accepts no writes. */
const haltCodes: readonly unknown[] = ["store_locked", "store_full"];

/** Below this number of claimed threads, an engine scans for more work before the next poll. */
const eagerScanBelow = 250;

/** Pending work of a thread. */
interface PendingWork {
  readonly starters: readonly (() => Promise<RunHandle<unknown> | undefined>)[];
  readonly isBounded: boolean;
}

/** Returns true if a due timer resumes its run. */
function canWakeRun({ kind }: TimerRow): boolean {
  switch (kind) {
    case "after":
    case "expiry":
      return true;
  }
}

/** Returns the branch of a timer's namespace. */
function getBranch({ branch }: TimerRow): string {
  const [name = branch] = branch.split("/");
  return name;
}

function ignore(): void {
  // Default of cancel callbacks.
}
