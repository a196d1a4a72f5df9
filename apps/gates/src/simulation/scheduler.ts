/**
 * Single-threaded scheduler of several simulated processes: a random source picks the next event from the list of
 * possible events. All promises settle between two events, so that equal seeds give equal runs.
 */
import { systemWorld } from "@statewright/core/adapter";
import type { Chance } from "@statewright/testing";
import { SimulatedClock, type SimulatedTimer } from "./simulated-clock.ts";
import { createProcess, type ProcessEntry, type ScheduledWork, type SimulatedProcess } from "./simulated-process.ts";

/** Probability that a timer fires before other pending work. */
const earlyTimerProbability = 0.02;

/** Scheduler of processes and their clocks. */
export class Scheduler {
  readonly #chance: Chance | undefined;
  readonly #seed: number;
  readonly #clock = new SimulatedClock();
  readonly #processes: ProcessEntry[] = [];
  #lastOrder = 0;
  #ticks = 0;

  /** Without `chance`, work runs in scheduling order. */
  constructor(chance: Chance | undefined, seed: number) {
    this.#chance = chance;
    this.#seed = seed;
  }

  /** Number of events so far. */
  get ticks(): number {
    return this.#ticks;
  }

  spawn(): SimulatedProcess {
    const id = this.#processes.length + 1;
    const entry = createProcess({
      id,
      seed: this.#seed * 31 + id,
      clock: this.#clock,
      takeOrder: () => ++this.#lastOrder,
    });
    this.#processes.push(entry);
    return entry.process;
  }

  /** Runs events until `isFinished` returns true, or until no event is possible (`idle`). */
  async runUntil(isFinished: () => boolean, beforeEach: (tick: number) => void): Promise<"finished" | "idle"> {
    const { schedule } = systemWorld();
    for (let isIdle = false; ; ) {
      await new Promise<void>((resolve) => schedule.soon(resolve));
      if (isFinished()) return "finished";
      if (!isIdle) beforeEach(++this.#ticks);
      const fire = this.#takeNext();
      // Work scheduled by `beforeEach` may still be pending.
      if (fire === undefined && isIdle) return "idle";
      isIdle = fire === undefined;
      fire?.();
    }
  }

  /** Moves the wall clock, as after a manual clock change. */
  jumpWallClock(ms: number): void {
    this.#clock.jump(ms);
  }

  /** Takes the next work from its queue; undefined when nothing is pending. */
  #takeNext(): (() => void) | undefined {
    const choices = listChoices(this.#processes);
    const isTimerEarly = choices.length > 0 && this.#chance?.flip(earlyTimerProbability) === true;
    if (choices.length === 0 || isTimerEarly) {
      const timer = this.#takeFirstTimer();
      if (timer !== undefined || choices.length === 0) return timer;
    }
    const { lane, work } = this.#chance === undefined ? findOldest(choices) : this.#chance.pick(choices);
    lane.splice(lane.indexOf(work), 1);
    return work.fire;
  }

  /** Takes the timer with the shortest remaining time; among equal times, the timer that was set first. */
  #takeFirstTimer(): (() => void) | undefined {
    let first: { readonly timer: SimulatedTimer; readonly owner: ProcessEntry; readonly remaining: number } | undefined;
    for (const owner of this.#processes)
      for (const timer of owner.timers) {
        const remaining = this.#clock.getRemainingMs(timer);
        const isTie = remaining === first?.remaining;
        if (first === undefined || remaining < first.remaining || (isTie && timer.order < first.timer.order))
          first = { timer, owner, remaining };
      }
    if (first === undefined) return undefined;
    const { timer, owner, remaining } = first;
    return () => {
      this.#clock.advance(remaining);
      owner.timers.delete(timer);
      timer.work();
    };
  }
}

/** Pending work with its queue. */
interface Choice {
  readonly lane: ScheduledWork[];
  readonly work: ScheduledWork;
}

/** Lists the possible next events: the first of each ordered lane, and all external work. */
function listChoices(processes: readonly ProcessEntry[]): readonly Choice[] {
  const choices: Choice[] = [];
  for (const { lanes } of processes) {
    if (lanes.soon[0] !== undefined) choices.push({ lane: lanes.soon, work: lanes.soon[0] });
    if (lanes.store[0] !== undefined) choices.push({ lane: lanes.store, work: lanes.store[0] });
    for (const work of lanes.external) choices.push({ lane: lanes.external, work });
  }
  return choices;
}

function findOldest(choices: readonly Choice[]): Choice {
  return choices.reduce((first, other) => (other.work.order < first.work.order ? other : first));
}
