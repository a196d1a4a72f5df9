/**
 * Requests: a cancel or a pause of a run, asked for by any process. The owner of the thread handles a request of a run
 * at work; any process handles a request of a run at rest. The commit that ends or pauses the run removes the request.
 */
import type { RunRow } from "./checkpoint.ts";

/** `cancel` fires the signals of the run and ends it; `pause` stops the run at its next boundary. */
export type RunRequestKind = "cancel" | "pause";

/** Request of a run. */
export interface RunRequest {
  /** Set by the sender; unique in its thread. */
  readonly id: string;
  readonly branch: string;
  /** Run that the request is about. */
  readonly run: string;
  readonly kind: RunRequestKind;
  /** Reason, as given by the sender. */
  readonly reason?: string | undefined;
  /** Author, as given by the sender. */
  readonly by?: string | undefined;
  /** For a pause: time at which the run continues by itself, in milliseconds since the epoch. Default: never. */
  readonly until?: number | undefined;
  /** Idempotency key: unique in its thread. A request with a key is kept as long as its thread. */
  readonly key?: string | undefined;
  /** Time of the request in milliseconds since the epoch. */
  readonly at: number;
  /** True for a kept request with a key that needs no work: handled, or without effect from the start. */
  readonly handled?: true | undefined;
}

/** Request to add. */
export interface RunRequestWrite extends Omit<RunRequest, "branch" | "run" | "handled"> {
  readonly thread: string;
  /** Branch of the run, if `run` is absent; default: the thread's head branch. */
  readonly branch?: string | undefined;
  /** Default: the newest run of the branch if it is unfinished, otherwise the first queued run of the branch. */
  readonly run?: string | undefined;
}

/** Outcome of adding a request. */
export interface RunRequestOutcome {
  /** The run after the write, with its stored status: `running` may be of a dead owner. */
  readonly run: RunRow;
  /** The request that counts: an earlier one, or the added one. Absent for a run that needs no request. */
  readonly request?: RunRequest | undefined;
  /** True if this write added a request, or removed the run from the queue. */
  readonly isNew: boolean;
}

/** Inputs that wait for the owner of a thread, over all branches. */
export interface InputCounts {
  /** Queued runs. */
  readonly queued: number;
  /** Inbox messages that no run has received. */
  readonly messages: number;
  /** Requests that are not handled. */
  readonly requests: number;
}

/**
 * What a hint is about. `input`: a queued run, an inbox message or a request was added or removed. `change`: a
 * checkpoint, a run, an interrupt or the row of the thread was written.
 */
export type HintKind = "input" | "change";

/** Receives hints about the threads of a store. */
export type HintListener = (thread: string, kind: HintKind) => void;

/** Options of `Store.watch`. */
export interface WatchOptions {
  /** Kinds of hints to receive; default: all. A store may need less work for fewer kinds. */
  readonly kinds?: readonly HintKind[] | undefined;
}
