/** Checkpoints: the control state of a thread after a superstep, and the rows in which it is saved. */
import type { ErrorRecord } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { Delta } from "../state/delta.ts";

/** One node execution of a superstep. `id` is `step:index`; a task made by a send carries its own input. */
export interface Task {
  readonly id: string;
  readonly node: string;
  /** The id of the send's input in {@link Control.inputs}; absent for a task that an edge started. */
  readonly input?: number;
  /** Present on a task that a `goto` or a recipient of sends was chosen by: the nodes that led here, for joins and pictures. */
  readonly from?: readonly string[];
}

/** A task of a deferred node that waits until nothing else is runnable. */
export interface Held {
  readonly node: string;
  readonly from: readonly string[];
  /** What a send gave it; absent for a task that an edge started. */
  readonly sent?: { readonly input: unknown };
}

/** Why a checkpoint was written. */
export type CheckpointSource = "input" | "step" | "update" | "fork";

/** Where control stands: the machine's state value, what runs next, and the joins that are half full. */
export interface Control {
  readonly machine: Json;
  readonly tasks: readonly Task[];
  /** Inputs of sent tasks, by index. */
  readonly inputs: readonly unknown[];
  /** Sources that have arrived at a join, by the join's target. */
  readonly joins: Readonly<Record<string, readonly string[]>>;
  /** Deferred tasks that wait, in the order in which they were led to; absent when there are none. */
  readonly held?: readonly Held[];
  /** Supersteps that the run has taken, over all its resumes: what the step limit counts. */
  readonly steps?: number;
  /** In an inner graph: the task of the graph around it that called it, and the checkpoint that decided that task. */
  readonly caller?: { readonly task: string; readonly checkpoint: number | undefined };
  /** What a hand-drawn machine has set going. */
  readonly pending?: Pending;
}

/** What is under way in a hand-drawn machine and its child machines, each named by the address of its machine: the ids that lead to it. */
export interface Pending {
  /** Ids of the root machine's own actors. */
  readonly children: readonly string[];
  readonly actors: readonly PendingActor[];
  readonly timers: readonly PendingTimer[];
}

/** A promise that was started and has not ended; `task` is `step:index` of its start. */
export interface PendingActor {
  readonly task: string;
  readonly owner: string;
  readonly id: string;
  readonly src: string;
  readonly input: unknown;
}

/** A timer; `armed` is `step:index` of its arming: a later one of the same id is another. Times are in milliseconds since the epoch. */
export interface PendingTimer {
  readonly armed: string;
  readonly owner: string;
  readonly id: string;
  /** The address of the machine that gets the event. */
  readonly to: string;
  readonly event: { readonly type: string };
  readonly dueAt: number;
}

/** A saved superstep. Ids count up per thread over all branches; `seq` is its place in the thread's durable events. */
export interface CheckpointRow {
  readonly id: number;
  readonly branch: string;
  readonly step: number;
  readonly parent: number | undefined;
  readonly source: CheckpointSource;
  /** The nodes whose results it folded, in order, each once. */
  readonly nodes: readonly string[];
  /** The control state, encoded. */
  readonly control: string;
  readonly run: string;
  readonly at: number;
  readonly durationMs: number;
  readonly seq: number;
  /** Bytes of the deltas saved with it. */
  readonly bytes: number;
}

/** One channel's change in a checkpoint, encoded. A `base` needs nothing before it. */
export interface DeltaRow {
  readonly channel: string;
  readonly kind: Delta["kind"];
  readonly base: boolean;
  readonly text: string;
}

/** The state of a run's row. */
export type RunStatus =
  | "queued"
  | "running"
  | "waiting"
  | "paused"
  | "parked"
  | "done"
  | "failed"
  | "cancelled"
  | "crashed";

/** One execution on a thread. */
export interface RunRow {
  readonly id: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly version: number;
  readonly status: RunStatus;
  readonly attempt: number;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  readonly error?: ErrorRecord | undefined;
}
