/** Clocks that all processes of a simulation share; time moves only when a timer fires. */

/** Timer of a process. */
export interface SimulatedTimer {
  /** Due time by the monotonic clock. */
  readonly after?: number;
  /** Due time by the wall clock. */
  readonly at?: number;
  readonly work: () => void;
  /** Position in scheduling order. */
  readonly order: number;
}

const startTime = Date.UTC(2025, 0, 1);

/** Monotonic clock and wall clock. */
export class SimulatedClock {
  #monotonic = 0;
  /** Sum of the jumps of the wall clock. */
  #skew = 0;

  getMonotonic(): number {
    return this.#monotonic;
  }

  getWallTime(): number {
    return startTime + this.#monotonic + this.#skew;
  }

  advance(ms: number): void {
    this.#monotonic += ms;
  }

  /** Moves the wall clock only, as after a manual clock change. */
  jump(ms: number): void {
    this.#skew += ms;
  }

  getRemainingMs({ after, at = 0 }: SimulatedTimer): number {
    return Math.max(0, after === undefined ? at - this.getWallTime() : after - this.#monotonic);
  }
}
