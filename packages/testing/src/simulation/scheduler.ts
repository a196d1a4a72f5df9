/**
 * Single-threaded scheduler of several simulated processes: a random source picks the next event from the list of
 * possible events. All promises settle between two events, so that equal seeds give equal runs.
 */

import type { World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { createSeededRandom } from "../virtual-clock.ts";
import type { Chance } from "./chance.ts";

/** Scheduled work. */
export interface ScheduledWork {
  readonly fire: () => void;
  /** Position in scheduling order. */
  readonly order: number;
}

/** Queue of a process. Only work in the lane `outside` may overtake. */
export type Lane = "soon" | "store" | "outside";

/** Simulated process; its pending work is dropped when it is killed. */
export interface SimulatedProcess {
  readonly id: number;
  readonly world: World;
  readonly isAlive: () => boolean;
  readonly add: (lane: Lane, fire: () => void) => void;
  /** Kills the process as with SIGKILL. */
  readonly kill: () => void;
}

interface Timer {
  /** Due time by the monotonic clock. */
  readonly after?: number;
  /** Due time by the wall clock. */
  readonly at?: number;
  readonly work: () => void;
  readonly order: number;
}

interface ProcessEntry {
  readonly process: SimulatedProcess;
  readonly lanes: Record<Lane, ScheduledWork[]>;
  readonly timers: Set<Timer>;
}

/** Scheduler of processes and their clocks. */
export interface Scheduler {
  readonly spawn: () => SimulatedProcess;
  /** Runs events until `ended` returns true, or until no event is possible (`idle`). */
  readonly runUntil: (isFinished: () => boolean, beforeEach: (tick: number) => void) => Promise<"ended" | "idle">;
  /** Moves the wall clock, as after a manual clock change. */
  readonly jumpWallClock: (ms: number) => void;
  readonly countTicks: () => number;
}

const startTime = Date.UTC(2025, 0, 1);

/** Creates a scheduler. Without `chance` the work runs in scheduling order. */
export function createScheduler(chance: Chance | undefined, seed: number): Scheduler {
  const real = systemWorld().schedule;
  const processes: ProcessEntry[] = [];
  let monotonic = 0;
  let skew = 0;
  let lastOrder = 0;
  let ticks = 0;
  const getWallTime = (): number => startTime + monotonic + skew;

  function spawn(): SimulatedProcess {
    let alive = true;
    const lanes: ProcessEntry["lanes"] = { soon: [], store: [], outside: [] };
    const timers = new Set<Timer>();
    const id = processes.length + 1;
    const add = (lane: Lane, fire: () => void): void => {
      if (alive) lanes[lane].push({ fire, order: ++lastOrder });
    };
    const addTimer = (timer: Timer): (() => void) => {
      if (alive) timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    };
    const process: SimulatedProcess = {
      id,
      isAlive: () => alive,
      add,
      kill: () => {
        alive = false;
        for (const lane of Object.values(lanes)) lane.length = 0;
        timers.clear();
      },
      world: {
        clock: { now: getWallTime, monotonic: () => monotonic },
        random: createSeededRandom(seed * 31 + id),
        log: () => undefined,
        schedule: {
          after: (delayMs, work) => addTimer({ after: monotonic + Math.max(0, delayMs), work, order: ++lastOrder }),
          at: (dueAt, work) => addTimer({ at: dueAt, work, order: ++lastOrder }),
          soon: (work) => add("soon", work),
        },
      },
    };
    processes.push({ process, lanes, timers });
    return process;
  }

  function getRemainingMs({ after, at }: Timer): number {
    return Math.max(0, after === undefined ? (at ?? 0) - getWallTime() : after - monotonic);
  }

  function takeFirstTimer(): (() => void) | undefined {
    let first: { readonly timer: Timer; readonly of: ProcessEntry; readonly left: number } | undefined;
    for (const of of processes)
      for (const timer of of.timers) {
        const left = getRemainingMs(timer);
        if (first === undefined || left < first.left || (left === first.left && timer.order < first.timer.order))
          first = { timer, of, left };
      }
    if (first === undefined) return undefined;
    const { timer, of, left } = first;
    return () => {
      monotonic += left;
      of.timers.delete(timer);
      timer.work();
    };
  }

  /** Lists the possible next events: the first of each ordered lane, and all external work. */
  function listChoices(): readonly { readonly lane: ScheduledWork[]; readonly work: ScheduledWork }[] {
    const found: { readonly lane: ScheduledWork[]; readonly work: ScheduledWork }[] = [];
    for (const { lanes } of processes) {
      if (lanes.soon[0] !== undefined) found.push({ lane: lanes.soon, work: lanes.soon[0] });
      if (lanes.store[0] !== undefined) found.push({ lane: lanes.store, work: lanes.store[0] });
      for (const work of lanes.outside) found.push({ lane: lanes.outside, work });
    }
    return found;
  }

  function takeNext(): (() => void) | undefined {
    const found = listChoices();
    const isEarly = found.length > 0 && chance?.flip(0.02) === true;
    if (found.length === 0 || isEarly) {
      const timer = takeFirstTimer();
      if (timer !== undefined || found.length === 0) return timer;
    }
    const chosen =
      chance === undefined
        ? found.reduce((first, other) => (other.work.order < first.work.order ? other : first))
        : chance.pick(found);
    chosen.lane.splice(chosen.lane.indexOf(chosen.work), 1);
    return chosen.work.fire;
  }

  return {
    spawn,
    runUntil: async (ended, beforeEach) => {
      for (let isIdle = false; ; ) {
        await new Promise<void>((resolve) => real.soon(resolve));
        if (ended()) return "ended";
        if (!isIdle) beforeEach(++ticks);
        const fire = takeNext();
        // Work scheduled by `beforeEach` may still be pending.
        if (fire === undefined && isIdle) return "idle";
        isIdle = fire === undefined;
        fire?.();
      }
    },
    jumpWallClock: (ms) => {
      skew += ms;
    },
    countTicks: () => ticks,
  };
}
