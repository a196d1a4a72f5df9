/** Recorded part of a test run: what the test has seen of the run, up to the moment at which the test holds the run. */
import type { Json, OpenInterrupt, RunResult } from "@statewright/core";
import { applyDelta } from "@statewright/core/store";
import type { TraceEntry } from "../trace/trace.ts";
import type { TestStatus } from "./test-run.ts";

/** Trace entries of a run, with the status, the state and the machine value after them. */
export class RunRecord {
  readonly entries: TraceEntry[] = [];
  status: TestStatus = "ready";
  /** State after the last recorded superstep. */
  state: Readonly<Record<string, unknown>>;
  /** State value of the machine. */
  value: Json;
  interrupts: readonly OpenInterrupt[] = [];
  /** Error of a failed run. */
  error: unknown;
  readonly #hold: () => void;
  /** Entries after the moment at which the test holds the run, recorded when the run advances. */
  #pending: TraceEntry[] = [];
  /** Stop condition of an advancing run; undefined while the test holds the run. */
  #isReached: (() => boolean) | undefined;

  /** `hold` blocks the process of the run. */
  constructor(start: { readonly state: Readonly<Record<string, unknown>>; readonly value: Json; hold(): void }) {
    this.state = start.state;
    this.value = start.value;
    this.#hold = start.hold;
  }

  /** True while the run advances to a stop condition. */
  isAdvancing(): boolean {
    return this.status === "held" && this.#isReached !== undefined;
  }

  /** Marks the start or the resume of a process. */
  start(): void {
    this.error = undefined;
    this.interrupts = [];
    this.status = "held";
  }

  /** Records pending entries, and the entries of the advancing run, until `isReached` returns true. */
  advance(isReached: () => boolean): void {
    this.#isReached = isReached;
    while (this.#pending.length > 0 && this.#isReached !== undefined) this.#record(this.#pending.shift() as TraceEntry);
  }

  /** Ends the advance: later entries are pending. */
  stop(): void {
    this.#isReached = undefined;
  }

  /** Receives an entry of the running process. */
  receive(entry: TraceEntry): void {
    if (this.#isReached === undefined) this.#pending.push(entry);
    else this.#record(entry);
  }

  finish(end: RunResult<unknown>): void {
    this.status = end.status;
    this.#recordPending();
    this.state = { ...(end.state as Record<string, unknown>) };
    this.interrupts = end.status === "waiting" ? end.interrupts : [];
  }

  fail(error: unknown): void {
    this.status = "failed";
    this.error = error;
    this.#recordPending();
  }

  /** Drops the pending entries of a killed process, except for entered bodies, which may have had effects. */
  dropPending(): void {
    this.entries.push(...this.#pending.filter(({ type }) => type === "tool.executed" || type === "task.started"));
    this.#pending = [];
  }

  #recordPending(): void {
    for (const entry of this.#pending.splice(0)) this.#record(entry);
  }

  #record(entry: TraceEntry): void {
    this.entries.push(entry);
    if (entry.type === "step.committed" && entry.within === undefined) {
      const state = { ...this.state };
      for (const [channel, delta] of Object.entries(entry.changes)) state[channel] = applyDelta(state[channel], delta);
      this.state = state;
    }
    if (entry.type === "transition.taken" && entry.path.length === 1) this.value = entry.to;
    // A superstep emits two events; state and machine agree only after the second event.
    if (entry.type === "step.committed" || this.#isReached?.() !== true) return;
    this.#isReached = undefined;
    this.#hold();
  }
}
