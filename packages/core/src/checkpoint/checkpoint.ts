/** Checkpoints: the control state of a thread after a superstep, and the rows in which it is saved. */
import type { ErrorRecord } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
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

/**
 * Why a checkpoint was written; `interrupt` and `rollback` end a run for the sake of a new input, and `migration` brings a
 * thread to a newer version of its graph.
 */
export type CheckpointSource = "input" | "step" | "update" | "fork" | "interrupt" | "rollback" | "migration";

/**
 * Who called an inner graph: the task of the graph around it (of a tool's call the task, a colon and the call's place in its
 * message), the checkpoint that decided that task, and the nodes and tools that lead here, as `outer.research`; and the name
 * of the graph that was called.
 */
export interface Caller {
  readonly task: string;
  readonly checkpoint: number | undefined;
  readonly within: string;
  readonly graph?: string;
}

/** Where control stands: the machine's state value, what runs next, and the joins that are half full. */
export interface Control {
  readonly machine: Json;
  readonly tasks: readonly Task[];
  /** The first place in the step that no task has had; absent where it is that behind the tasks. */
  readonly free?: number;
  /** Inputs of sent tasks, by index. */
  readonly inputs: readonly unknown[];
  /** Sources that have arrived at a join, by the join's target. */
  readonly joins: Readonly<Record<string, readonly string[]>>;
  /** Deferred tasks that wait, in the order in which they were led to; absent when there are none. */
  readonly held?: readonly Held[];
  /** Supersteps that the run has taken, over all its resumes: what the step limit counts. */
  readonly steps?: number;
  /** Nodes of agents that have begun in this run; absent where no hook wants to know. */
  readonly begun?: readonly string[];
  /** How often the agents of these nodes have asked their models since a person spoke last; absent where no limit counts it. */
  readonly turns?: Readonly<Record<string, number>>;
  /** In an inner graph: the task of the graph around it that called it, and the checkpoint that decided that task. */
  readonly caller?: Caller;
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

/**
 * The state of a run's row. `crashed` is never written: it is how a run reads that is `running` in its row and whose owner is
 * dead, as far as the store can know.
 */
export type RunStatus = (typeof runStatuses)[number];

/** Every status, in the order in which a run may come to it. */
export const runStatuses = [
  "queued",
  "running",
  "waiting",
  "paused",
  "parked",
  "done",
  "failed",
  "cancelled",
  "crashed",
] as const;

/** One execution on a thread. */
export interface RunRow {
  readonly id: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly version: number;
  readonly status: RunStatus;
  readonly attempt: number;
  /** When it began; of a queued run, when it was queued. */
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** What failed it, or why it is paused or parked. */
  readonly error?: ErrorRecord | undefined;
  /** Why it was cancelled. */
  readonly reason?: string | undefined;
  /** The idempotency key under which it was started: unique in its thread. */
  readonly key?: string | undefined;
  /** What lists find it by: plain data that was given with the input. */
  readonly metadata?: JsonObject | undefined;
  /** The encoded input of a queued run. */
  readonly input?: string | undefined;
  /** When it was put into the queue, if it was. */
  readonly queuedAt?: number | undefined;
  /** Of a queued run: the run that it ends, and how. */
  readonly stops?: { readonly run: string; readonly how: StopKind } | undefined;
  /** How often it went on after the death of its process, since the thread came to the checkpoint `at`. */
  readonly recovered?: { readonly count: number; readonly at: number } | undefined;
}

/** How a new input ends the run before it: at the next boundary with what finished, or as if it had never run. */
export type StopKind = "interrupt" | "rollback";
