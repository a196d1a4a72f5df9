/**
 * One thread of time for several processes: everything that could happen next stands in a list, and chance says which
 * does. Between two of them all promise work comes to rest, so that the same seed is the same story.
 */
import { systemWorld, type World } from "@statewright/core";
import { seededRandom } from "../virtual-clock.ts";
import type { Chance } from "./chance.ts";

/** Something that will happen when it is its turn. */
export interface Work {
  readonly fire: () => void;
  /** Its place in the order of asking. */
  readonly nth: number;
}

/** Where the work of a process waits. Only what happens outside may overtake. */
export type Lane = "soon" | "store" | "outside";

/** A process: it lives until it is killed, and nothing that it has under way comes after that. */
export interface SimulatedProcess {
  readonly id: number;
  readonly world: World;
  readonly alive: () => boolean;
  readonly add: (lane: Lane, fire: () => void) => void;
  /** As by SIGKILL. */
  readonly kill: () => void;
}

interface Timer {
  /** By the monotonic clock. */
  readonly after?: number;
  /** By the wall clock. */
  readonly at?: number;
  readonly work: () => void;
  readonly nth: number;
}

interface Inner {
  readonly process: SimulatedProcess;
  readonly lanes: Record<Lane, Work[]>;
  readonly timers: Set<Timer>;
}

/** Processes, their clocks, and what happens next. */
export interface Scheduler {
  readonly spawn: () => SimulatedProcess;
  /** Let things happen until `ended` says so. `idle`: nothing is left that could happen. */
  readonly until: (ended: () => boolean, beforeEach: (tick: number) => void) => Promise<"ended" | "idle">;
  /** The wall clock jumps, as when somebody sets it. */
  readonly jump: (ms: number) => void;
  readonly ticks: () => number;
}

const beginning = Date.UTC(2025, 0, 1);

/** A scheduler. Without `chance` everything happens in the order in which it was asked for. */
export function createScheduler(chance: Chance | undefined, seed: number): Scheduler {
  const real = systemWorld().schedule;
  const processes: Inner[] = [];
  let monotonic = 0;
  let skew = 0;
  let nth = 0;
  let ticks = 0;
  const wall = (): number => beginning + monotonic + skew;

  function spawn(): SimulatedProcess {
    let alive = true;
    const lanes: Inner["lanes"] = { soon: [], store: [], outside: [] };
    const timers = new Set<Timer>();
    const id = processes.length + 1;
    const add = (lane: Lane, fire: () => void): void => {
      if (alive) lanes[lane].push({ fire, nth: ++nth });
    };
    const set = (timer: Timer): (() => void) => {
      if (alive) timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    };
    const process: SimulatedProcess = {
      id,
      alive: () => alive,
      add,
      kill: () => {
        alive = false;
        for (const lane of Object.values(lanes)) lane.length = 0;
        timers.clear();
      },
      world: {
        clock: { now: wall, monotonic: () => monotonic },
        random: seededRandom(seed * 31 + id),
        log: () => undefined,
        schedule: {
          after: (delayMs, work) => set({ after: monotonic + Math.max(0, delayMs), work, nth: ++nth }),
          at: (dueAt, work) => set({ at: dueAt, work, nth: ++nth }),
          soon: (work) => add("soon", work),
        },
      },
    };
    processes.push({ process, lanes, timers });
    return process;
  }

  function leftOf({ after, at }: Timer): number {
    return Math.max(0, after === undefined ? (at ?? 0) - wall() : after - monotonic);
  }

  function firstTimer(): (() => void) | undefined {
    let first: { readonly timer: Timer; readonly of: Inner; readonly left: number } | undefined;
    for (const of of processes)
      for (const timer of of.timers) {
        const left = leftOf(timer);
        if (first === undefined || left < first.left || (left === first.left && timer.nth < first.timer.nth))
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

  /** What may happen next: the first of each lane that keeps its order, and all that happens outside. */
  function choices(): readonly { readonly lane: Work[]; readonly work: Work }[] {
    const found: { readonly lane: Work[]; readonly work: Work }[] = [];
    for (const { lanes } of processes) {
      if (lanes.soon[0] !== undefined) found.push({ lane: lanes.soon, work: lanes.soon[0] });
      if (lanes.store[0] !== undefined) found.push({ lane: lanes.store, work: lanes.store[0] });
      for (const work of lanes.outside) found.push({ lane: lanes.outside, work });
    }
    return found;
  }

  function next(): (() => void) | undefined {
    const found = choices();
    const early = found.length > 0 && chance?.share(0.02) === true;
    if (found.length === 0 || early) {
      const timer = firstTimer();
      if (timer !== undefined || found.length === 0) return timer;
    }
    const chosen =
      chance === undefined
        ? found.reduce((first, other) => (other.work.nth < first.work.nth ? other : first))
        : chance.of(found);
    chosen.lane.splice(chosen.lane.indexOf(chosen.work), 1);
    return chosen.work.fire;
  }

  return {
    spawn,
    until: async (ended, beforeEach) => {
      for (let isIdle = false; ; ) {
        await new Promise<void>((resolve) => real.soon(resolve));
        if (ended()) return "ended";
        if (!isIdle) beforeEach(++ticks);
        const fire = next();
        // What `beforeEach` did may still be on its way.
        if (fire === undefined && isIdle) return "idle";
        isIdle = fire === undefined;
        fire?.();
      }
    },
    jump: (ms) => {
      skew += ms;
    },
    ticks: () => ticks,
  };
}
