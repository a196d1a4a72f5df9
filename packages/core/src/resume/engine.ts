/**
 * An engine: a process that serves threads. It goes on with what a crash left, fires what is due, takes what is queued, and
 * on stop lets its runs come to where they can be saved. It sleeps until the next due time, and looks from time to time for
 * what other processes may have added.
 */
import { isStatewrightError, StatewrightError, toErrorRecord } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import { optionNames } from "../base/options.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import { engineStops } from "../checkpoint/claimable.ts";
import type { TimerRow } from "../checkpoint/timer.ts";
import type { Graph } from "../compile/define-graph.ts";
import { planOf } from "../compile/plan.ts";
import type { GraphTypes } from "../define/graph.ts";
import { stopNow } from "../run/launch.ts";
import { type SavingCaller, takeUp } from "../run/queue.ts";
import { startRun } from "../run/run.ts";
import { checkRunOptions } from "../run/session/check-run-options.ts";
import { createSlots } from "../run/session/concurrency.ts";
import type { ResumeOptions, RunHandle, RunOptions, RunResult } from "../run/session/options.ts";
import { worldOf } from "../run/task/open-session.ts";
import { resumeRun } from "./resume.ts";
import {
  besides,
  callerOf,
  callersOf,
  checkCount,
  checkServing,
  continueRun,
  createFinder,
  type ServingOptions,
} from "./serving.ts";

/** What `engine` takes. */
export interface EngineOptions extends ServingOptions {
  /** Runs that the engine has at work at the same time by itself; machines drawn by hand, which mostly wait, do not count. Default 64. */
  readonly concurrency?: number;
  /** How often it looks for what other processes have added, in milliseconds. Default 1,000. */
  readonly pollMs?: number;
  /**
   * Is given each run that begins or goes on here, before its first event: those that the engine takes up by itself, and those
   * of its `run` and `resume`. A server finds in it what it shows to people.
   */
  readonly onRun?: (run: RunHandle<unknown>) => void;
}

type Given = "store" | "secrets" | "world" | "codec";

/** A process that serves threads: recovers, fires timers, expires questions, takes queued inputs, drains on stop. */
export interface Engine {
  /** Begin: what a crash left goes on, what is due fires, what is queued begins. Throws what the store throws. */
  start(): Promise<void>;
  /**
   * Begin nothing more, and let every run at work come to the end of its superstep; resolves when all are saved and nothing
   * is left behind. `now` fires their signals too, also while an earlier call still waits; `graceMs` does so after that time.
   */
  stop(options?: { readonly now?: boolean; readonly graceMs?: number }): Promise<void>;
  /** As `run`, with the store, the secrets and the world of the engine. Throws `engine_stopped`. */
  run<Types extends GraphTypes>(
    graph: Graph<Types>,
    options: Omit<RunOptions<Types>, Given>,
  ): RunHandle<Types["result"], Types["output"]>;
  /** As `resume`, with the store, the secrets and the world of the engine. Throws `engine_stopped`. */
  resume<Types extends GraphTypes>(
    graph: Graph<Types>,
    options: Omit<ResumeOptions<Types>, Given>,
  ): RunHandle<Types["result"], Types["output"]>;
}

const names = optionNames<EngineOptions>({
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

/** An engine over the threads of a store; it does nothing before `start`. Throws `invalid_option`, `missing_store`. */
export function engine(options: EngineOptions): Engine {
  checkServing("engine", options, names);
  const { store, secrets, world: givenWorld, codec, concurrency = 64, pollMs = 1_000, parkAfter, onRun } = options;
  checkCount("engine", "concurrency", concurrency === Number.POSITIVE_INFINITY ? undefined : concurrency);
  checkCount("engine", "pollMs", pollMs);
  if (onRun !== undefined && typeof onRun !== "function")
    throw new StatewrightError("invalid_option", {
      what: `onRun of engine is ${describeValue(onRun)}`,
      next: "Give a function that takes the handle of a run",
    });
  const world = worldOf(options);
  const own = {
    store,
    ...(secrets === undefined ? {} : { secrets }),
    ...(givenWorld === undefined ? {} : { world: givenWorld }),
    ...(codec === undefined ? {} : { codec }),
  };
  const slots = createSlots(concurrency);
  const atWork = new Map<RunHandle<unknown>, Promise<void>>();
  /** Threads that the engine has in hand by itself, at work or in line for a slot. */
  const inHand = new Set<string>();
  /** Runs that were said to be left alone: once each, for as long as they are found. */
  let leftAlone = new Set<string>();
  /** What was found since all was last seen. */
  const seen = new Set<string>();
  /** Parked runs that were tried with the graphs that are here: once each. */
  const tried = new Set<string>();
  /** Runs that have stopped because the store took nothing, by thread: where it did not even take that, they read as at work. */
  const halted = new Map<string, string>();
  let state: "idle" | "serving" | "stopping" = "idle";
  let looking: Promise<void> | undefined;
  let lookAgain = false;
  /** The last look has not seen all: the next one comes when this process has room, not with the next poll. */
  let hasMore = false;
  const finder = createFinder(store);
  let stopping: Promise<void> | undefined;
  let cancelAlarm: () => void = nothing;
  let cancelPoll: () => void = nothing;
  const host = callersOf(options, {
    accepts: () => state === "serving",
    launched: (handle) => {
      track(handle);
    },
  });

  function isServing(): boolean {
    return state === "serving";
  }

  /** Keep a run in hand until it has ended for now. Its failure is its own. */
  function track(handle: RunHandle<unknown>): Promise<void> {
    const known = atWork.get(handle);
    if (known !== undefined) return known;
    const ended = handle.result
      .then(noteHalt, (error: unknown) => {
        if (isStatewrightError(error, "thread_busy")) return;
        world.log("warn", "a run failed", { thread: handle.thread, run: handle.id, error: toErrorRecord(error) });
      })
      .then(() => {
        atWork.delete(handle);
        if (isServing()) void setAlarm();
      });
    atWork.set(handle, ended);
    if (state === "stopping") handle.drain(engineStops);
    tellOf(handle);
    return ended;
  }

  function noteHalt(result: RunResult<unknown>): void {
    const { status, run, thread } = result;
    if (status === "paused" && haltCodes.includes(result.cause.code)) halted.set(thread, run);
  }

  /** Those of them that nobody could tell from runs at work: as after the death of a process, they go on by themselves. */
  async function haltedRuns(): Promise<readonly RunRow[]> {
    const rows = [...halted].map(async ([thread, id]) => {
      const running = await store.runs({ thread, status: "running" });
      if (!inHand.has(thread)) halted.delete(thread);
      return running.filter((row) => row.id === id);
    });
    return (await Promise.all(rows)).flat();
  }

  /** What is called harms no run, also where it fails later. */
  function tellOf(handle: RunHandle<unknown>): void {
    const failed = (error: unknown): void =>
      world.log("error", "onRun of the engine threw", { thread: handle.thread, error: toErrorRecord(error) });
    try {
      const given: unknown = onRun?.(handle);
      if (given instanceof Promise) given.catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  function tracked<Run extends RunHandle<unknown>>(handle: Run): Run {
    void track(handle);
    return handle;
  }

  /** Have a thread in hand while what is to be done on it is done, one thing after the other. */
  function hold(thread: string, { begin, isBounded }: Due): void {
    inHand.add(thread);
    const work = async (): Promise<void> => {
      for (const each of begin) {
        try {
          const handle = isServing() ? await each() : undefined;
          if (handle !== undefined) await track(handle);
        } catch (error) {
          world.log("warn", "a run could not be begun", { thread, error: toErrorRecord(error) });
        }
      }
      inHand.delete(thread);
      if (hasMore && isServing() && inHand.size < roomForMore) {
        hasMore = false;
        lookAndSay();
      }
    };
    if (isBounded) slots.add(work);
    else void work();
  }

  /** Look once at all that there is to do. */
  async function look(): Promise<void> {
    const found = await finder.next();
    const { queued, left } = found;
    hasMore = found.more;
    const parked = found.parked.filter(({ id }) => !tried.has(id));
    const due = [...(await dueRuns(await store.timers({ dueBy: world.clock.now() }))), ...(await haltedRuns())];
    for (const { id } of [...queued, ...left, ...parked, ...due]) seen.add(id);
    if (!found.more) {
      leftAlone = new Set([...leftAlone].filter((id) => seen.has(id)));
      seen.clear();
    }
    const threads = new Map<string, Due>();
    const serve = (row: RunRow, begin: (caller: SavingCaller) => Promise<RunHandle<unknown> | undefined>): void => {
      if (inHand.has(row.thread) || leftAlone.has(row.id)) return;
      const caller = callerOf(options, host, row);
      if (caller === undefined) {
        leftAlone.add(row.id);
        return;
      }
      const { begin: before } = threads.get(row.thread) ?? { begin: [] };
      const isBounded = planOf(caller.graph).drawing === undefined;
      threads.set(row.thread, { begin: [...before, () => begin(caller)], isBounded });
    };
    // What is queued comes first: it may end the run that was left.
    for (const row of queued) serve(row, (caller) => takeUp(caller, store, row.thread));
    for (const row of left) serve(row, async (caller) => tracked(continueRun(caller, row, parkAfter)));
    for (const row of parked)
      serve(row, async (caller) => {
        tried.add(row.id);
        return tracked(continueRun(caller, row, parkAfter));
      });
    for (const row of due)
      serve(row, async (caller) => {
        const { thread, branch } = row;
        return tracked(resumeRun({ ...caller, options: { ...caller.options, thread, branch } }));
      });
    for (const [thread, due] of threads) if (isServing()) hold(thread, due);
  }

  /** The runs that something is due for, each once. A run that a person has paused stays so, whatever is due. */
  async function dueRuns(timers: readonly TimerRow[]): Promise<readonly RunRow[]> {
    const branches = new Map(timers.filter(wakesItsRun).map((row) => [`${row.thread} ${branchOf(row)}`, row]));
    const rows = await Promise.all(
      [...branches.values()].map(async (timer) => {
        const waiting = await store.runs({ thread: timer.thread, status: "waiting" });
        return waiting.filter(({ branch }) => branch === branchOf(timer));
      }),
    );
    return rows.flat();
  }

  /** One look after the other; one that is asked for meanwhile comes next. */
  function lookAround(): Promise<void> {
    lookAgain = true;
    looking ??= (async () => {
      try {
        while (lookAgain && isServing()) {
          lookAgain = false;
          await look();
        }
      } finally {
        looking = undefined;
      }
    })();
    return looking;
  }

  function lookAndSay(): void {
    lookAround()
      .catch((error: unknown) =>
        world.log("error", "the store could not be looked at", { error: toErrorRecord(error) }),
      )
      .then(() => (isServing() ? setClock() : undefined), nothing);
  }

  async function setClock(): Promise<void> {
    cancelPoll();
    cancelPoll = world.schedule.after(pollMs, lookAndSay);
    await setAlarm();
  }

  /** Wake when the next timer is due. What is due already and busy elsewhere is looked at again with the next poll. */
  async function setAlarm(): Promise<void> {
    try {
      const now = world.clock.now();
      const next = (await store.timers({ limit: 100 })).find(({ dueAt }) => dueAt > now);
      cancelAlarm();
      cancelAlarm = nothing;
      if (next !== undefined && isServing()) cancelAlarm = world.schedule.at(next.dueAt, lookAndSay);
    } catch (error) {
      world.log("error", "the timers could not be read", { error: toErrorRecord(error) });
    }
  }

  function stopAllNow(): void {
    for (const handle of atWork.keys()) stopNow(handle, engineStops);
  }

  async function stopServing(): Promise<void> {
    state = "stopping";
    slots.clear();
    inHand.clear();
    cancelPoll();
    cancelAlarm();
    for (const handle of atWork.keys()) handle.drain(engineStops);
    await looking?.catch(nothing);
    while (atWork.size > 0) await Promise.all(atWork.values());
    cancelPoll();
    cancelAlarm();
    state = "idle";
    stopping = undefined;
  }

  function refuseStopped(): void {
    if (state !== "stopping") return;
    throw new StatewrightError("engine_stopped", {
      what: "the engine stops and begins nothing more",
      next: "Give the input to another engine, or start this one again when it has stopped",
    });
  }

  return {
    start: async () => {
      await stopping;
      if (isServing()) return;
      state = "serving";
      try {
        await lookAround();
        await setClock();
      } catch (error) {
        await stopServing();
        throw error;
      }
    },
    stop: async ({ now = false, graceMs } = {}) => {
      if (state === "idle" && atWork.size === 0) return;
      stopping ??= stopServing();
      if (now) stopAllNow();
      const cancelGrace = graceMs === undefined ? nothing : world.schedule.after(graceMs, stopAllNow);
      await stopping;
      cancelGrace();
    },
    run: (graph, given) => {
      refuseStopped();
      const all = { ...besides(options, graph), ...given, ...own };
      checkRunOptions("run", graph, all);
      const handle = startRun({ graph: graph as Graph, options: all as RunOptions<GraphTypes>, host });
      return tracked(handle) as RunHandle<never, never>;
    },
    resume: (graph, given) => {
      refuseStopped();
      const all = { ...besides(options, graph), ...given, ...own };
      checkRunOptions("resume", graph, all);
      const handle = resumeRun({ graph: graph as Graph, options: all as ResumeOptions<GraphTypes>, host });
      return tracked(handle) as RunHandle<never, never>;
    },
  };
}

/** Why a run stands still that its store takes nothing for. */
const haltCodes: readonly unknown[] = ["store_locked", "store_full"];

/** With fewer threads than this in hand, an engine looks for more before the next poll. */
const roomForMore = 250;

/** What is to be done on a thread. */
interface Due {
  readonly begin: readonly (() => Promise<RunHandle<unknown> | undefined>)[];
  readonly isBounded: boolean;
}

/** Whether a timer that is due is a matter for its run. */
function wakesItsRun({ kind }: TimerRow): boolean {
  switch (kind) {
    case "after":
    case "expiry":
      return true;
  }
}

/** The branch of a line. */
function branchOf({ branch }: TimerRow): string {
  const [name = branch] = branch.split("/");
  return name;
}

function nothing(): void {
  // Nothing is set, or nothing is to be done.
}
