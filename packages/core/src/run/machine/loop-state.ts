/** State of the event loop of a user-written machine in a single process. */
import type { StatewrightError } from "../../base/errors.ts";
import type { InterruptRow } from "../../checkpoint/journal.ts";
import type { MachineDefinition } from "../../compile/durable-machine.ts";
import type { RecordedOutcome } from "../journal/decide-effect.ts";
import type { PriorEffect } from "../journal/prior-effects.ts";
import type { ActorTree, InvokedPromise, MachineTimer } from "../kernel/actor-tree.ts";
import type { QueuedEvent } from "../session/inbox/event-inbox.ts";
import type { Session } from "../session/session.ts";
import type { WakeSignal } from "./wake-signal.ts";

/** Outcome of a promise with the time of its end. */
export type TimedOutcome = RecordedOutcome & { readonly endedAt: number };

/** State of the loop: running actors, outcomes and queued events. */
export interface LoopState {
  readonly session: Session;
  readonly definition: MachineDefinition;
  readonly tree: ActorTree;
  /** Interrupts of the current step, with their answers. */
  readonly answers: Map<string, InterruptRow>;
  readonly running: Map<InvokedPromise, AbortController | "in doubt">;
  /** Outcomes of promises not yet delivered to the machine, in order of completion. */
  readonly outcomes: Map<InvokedPromise, TimedOutcome>;
  readonly timers: Map<MachineTimer, () => void>;
  /** Notified by every change that the loop may wait for: outcomes, timers, arrivals, failures, and requests to stop. */
  readonly wake: WakeSignal;
  /** Prior effects of `once` promises on other branches. */
  readonly priorEffects: Map<InvokedPromise, PriorEffect | undefined>;
  /** Queued events, oldest first. */
  queue: readonly QueuedEvent[];
  /** Ids of the queued events of the caller that resumed this run. */
  readonly ownIds: ReadonlySet<string>;
  /** True when the inbox may have events that are not in `queue`. */
  hasArrivals: boolean;
  /** True when this iteration of the loop has read the inbox: required before the run comes to rest. */
  hasReadQueue: boolean;
  /** Time of the next poll for events from other processes, by the monotonic clock. */
  pollAt: number;
  /** Ids of the interrupts of the current step listed while a promise runs. */
  readonly listedIds: Set<string>;
  failure: unknown;
  /** Error of a refused event of the caller. */
  refusal: StatewrightError | undefined;
}

/** True while a promise without an outcome is running. */
export function hasRunningPromise({ running, outcomes }: LoopState): boolean {
  return [...running].some(([work, state]) => state !== "in doubt" && !outcomes.has(work));
}

/** Sets the outcome of a promise that does not run in this process. */
export function setOutcome({ running, outcomes }: LoopState, work: InvokedPromise, outcome: TimedOutcome): void {
  running.set(work, new AbortController());
  outcomes.set(work, outcome);
}
