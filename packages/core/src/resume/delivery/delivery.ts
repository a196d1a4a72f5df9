/** Deliveries of an orchestrator, and their results. */
import type { ErrorRecord } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import type { RunStatus } from "../../checkpoint/checkpoint.ts";
import type { ConversationMessageKind } from "../../checkpoint/inbox-message.ts";
import type { ClaimMode } from "../../checkpoint/previous-owner.ts";
import type { Graph } from "../../compile/graph.ts";
import type { OpenInterrupt } from "../../run/events/run-event.ts";
import type { InboxInput } from "../../run/session/inbox/inbox-input.ts";
import type { OnBusy } from "../../run/session/options/options.ts";

/**
 * Limits of a delivery. The run that reaches a limit pauses at its next boundary, and the next delivery continues it.
 */
export interface DeliveryLimits {
  /** Milliseconds since the call. Default: no limit. */
  readonly ms?: number;
  /** Supersteps of the outermost graph that this delivery commits. Default: no limit. */
  readonly supersteps?: number;
  /** Model calls, tool calls, steps and other recorded effects that this delivery runs. Default: no limit. */
  readonly effects?: number;
}

/** Thread, key and conditions of a delivery. */
export interface DeliveryBase {
  readonly thread: string;
  /** Default: the head branch of the thread. */
  readonly branch?: string;
  /**
   * Idempotency key, a valid id, unique in the thread. A delivery with a known key continues what the first one began,
   * or gives its outcome. Required, except with `timers` and `resume`.
   */
  readonly key?: string;
  /**
   * `free` (default) leaves a thread to its live owner: the result has `hasMore`. `force` takes the thread from a live
   * owner in another process: for an orchestrator that delivers the work of a thread to one process at a time.
   */
  readonly claim?: ClaimMode;
  /**
   * Time of the delivery by the clock of the orchestrator, in milliseconds since the epoch. Due times follow this clock
   * when the store has none. Default: the clock of the world.
   */
  readonly at?: number;
  /** Ends the delivery when it fires: the run pauses at its next boundary, and the result has `hasMore`. */
  readonly signal?: AbortSignal;
  /** Milliseconds after `signal` until the signals of the run abort too. Default: never. */
  readonly graceMs?: number;
  readonly limits?: DeliveryLimits;
}

/** Input to run on the thread; a missing thread is created. */
export interface DeliveredRun {
  /** Graph, or the name of a served graph. */
  readonly graph: Graph | string;
  readonly input?: unknown;
  readonly metadata?: JsonObject;
  /** Handling of a thread with an unfinished run, as of `submit`. Default `enqueue`. */
  readonly onBusy?: OnBusy;
  readonly tenant?: string;
  readonly owner?: string;
}

/** Messages for the conversation of the thread. */
export interface DeliveredMessages {
  /** `steer`: at the next boundary of the run; `followUp`: when the run would otherwise end. */
  readonly kind: ConversationMessageKind;
  /** Text, or messages with the role user or system. */
  readonly messages: InboxInput;
}

/** Work of a delivery: exactly one. */
export type DeliveredWork =
  | { readonly run: DeliveredRun }
  /** Answers by interrupt key or id, with their author. */
  | { readonly answers: Readonly<Record<string, unknown>>; readonly by?: string }
  | { readonly message: DeliveredMessages }
  /** Cancels the run of the thread with this reason, in any process; the first cancel counts. */
  | { readonly cancel: string; readonly by?: string }
  /** Fires the due timers of the thread. */
  | { readonly timers: true }
  /** Continues the thread: a crashed or paused run, a failed one, or the next queued one. */
  | { readonly resume: true };

/** A delivery of an orchestrator. */
export type Delivery = DeliveryBase & DeliveredWork;

/** What a delivery left. */
export interface DeliveryResult {
  /**
   * Status of the run; `idle` for a thread without a run, `refused` for a delivery that changed nothing and has to be
   * changed before it is delivered again.
   */
  readonly status: RunStatus | "idle" | "refused";
  /** Run of the delivery, or the newest run of the branch. */
  readonly run?: string;
  /** Open interrupts of a waiting run. */
  readonly interrupts: readonly OpenInterrupt[];
  /** Output of a run with the status `done`. */
  readonly output?: unknown;
  /** Error of a failed or parked run, or the cause of a pause; without stacks. */
  readonly error?: ErrorRecord;
  /** Reason of a refusal. */
  readonly refused?: ErrorRecord;
  /** Next due time of the thread, in milliseconds since the epoch: deliver `timers` then. */
  readonly next?: { readonly at: number };
  /**
   * True when the delivery stopped before the thread had nothing left to do: it reached its limits, its signal fired,
   * another process is at work on the thread, or more runs are queued. Deliver again: the same delivery, or `resume`.
   */
  readonly hasMore: boolean;
}
