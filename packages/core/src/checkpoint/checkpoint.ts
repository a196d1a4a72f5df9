/** Checkpoints: the control state of a thread after a superstep, and the rows that store a checkpoint. */
import type { ErrorRecord } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { Delta } from "../state/delta.ts";

/** Execution of a node in a superstep. `id` is `step:index`; a task started by a send carries its own input. */
export interface Task {
  readonly id: string;
  readonly node: string;
  /** Index of the send's input in {@link Control.inputs}; absent for a task started by an edge. */
  readonly input?: number;
  /** Source nodes of this task, for joins and pictures; set for targets of a `goto` and for recipients of sends. */
  readonly from?: readonly string[];
}

/** Task of a deferred node; starts when no other task is runnable. */
export interface DeferredTask {
  readonly node: string;
  readonly from: readonly string[];
  /** Input of the send; absent for a task started by an edge. */
  readonly sent?: { readonly input: unknown };
}

/**
 * Reason for a checkpoint. `interrupt` and `rollback` end a run in favor of a new input; `migration` moves a thread
 * to a newer version of its graph.
 */
export type CheckpointSource = "input" | "step" | "update" | "fork" | "cancel" | "rollback" | "migration";

/**
 * Call of an inner graph. `task` is the calling task of the parent graph (for a tool call: the task, a colon and the
 * index of the call in its message), `checkpoint` is the parent checkpoint that scheduled the task, `nesting` is the
 * path of nodes and tools such as `outer.research`, and `graph` is the name of the called graph.
 */
export interface Caller {
  readonly task: string;
  readonly checkpoint: number | undefined;
  readonly nesting: string;
  readonly graph?: string;
}

/** Control state: the machine's state value, the next tasks, and partially filled joins. */
export interface Control {
  readonly machine: Json;
  readonly tasks: readonly Task[];
  /** First unused task index of the step; when absent, the number of tasks. */
  readonly free?: number;
  /** Inputs of sent tasks, by index. */
  readonly inputs: readonly unknown[];
  /** Sources that have arrived at a join, by the join's target. */
  readonly joins: Readonly<Record<string, readonly string[]>>;
  /** Deferred tasks in scheduling order; absent when empty. */
  readonly deferred?: readonly DeferredTask[];
  /** Supersteps of the run over all resumes, for the step limit. */
  readonly steps?: number;
  /** Agent nodes already started in this run; absent when no hook needs the list. */
  readonly startedAgents?: readonly string[];
  /** Model calls per agent node since the last user message; absent when no limit counts turns. */
  readonly turns?: Readonly<Record<string, number>>;
  /** In an inner graph: the calling task of the parent graph, and the checkpoint that scheduled the task. */
  readonly caller?: Caller;
  /** Pending actors and timers of a user-written machine. */
  readonly pending?: Pending;
  /** Writers of this superstep; absent for a single task without several tool calls or inbox messages. */
  readonly writers?: SavedWriters;
}

/**
 * Writers of a superstep by channel, in the order of their writes. A number: each task of the superstep wrote so many
 * items.
 */
export type SavedWriters = Readonly<Record<string, number | readonly SavedWriter[]>>;

/** Task, number of items of a list or keys of a record (otherwise 1), and tool call. */
export type SavedWriter = readonly [task: string, part: number | readonly string[], call?: string];

/**
 * Pending work of a user-written machine and its child machines. Each machine is identified by its address: the actor
 * ids from the root down to the machine.
 */
export interface Pending {
  /** Ids of the root machine's own actors. */
  readonly children: readonly string[];
  readonly actors: readonly PendingActor[];
  readonly timers: readonly PendingTimer[];
}

/** Promise that was started and has not ended; `task` is `step:index` of its start. */
export interface PendingActor {
  readonly task: string;
  readonly owner: string;
  readonly id: string;
  readonly src: string;
  readonly input: unknown;
}

/**
 * Timer of a machine. `armed` is `step:index` of the arming: arming the same id later creates another timer. Times
 * are in milliseconds since the epoch.
 */
export interface PendingTimer {
  readonly armed: string;
  readonly owner: string;
  readonly id: string;
  /** Address of the machine that receives the event. */
  readonly to: string;
  readonly event: { readonly type: string };
  readonly dueAt: number;
}

/**
 * Row of a saved superstep. Ids count up per thread over all branches; `seq` is the sequence number among the durable
 * events of the thread.
 */
export interface CheckpointRow {
  readonly id: number;
  readonly branch: string;
  readonly step: number;
  readonly parent: number | undefined;
  readonly source: CheckpointSource;
  /** Nodes whose results this checkpoint reduced, in order, each once. */
  readonly nodes: readonly string[];
  /** Encoded control state. */
  readonly control: string;
  readonly run: string;
  readonly at: number;
  readonly durationMs: number;
  readonly seq: number;
  /** Bytes of the deltas saved with this checkpoint. */
  readonly bytes: number;
}

/** Encoded change of a channel in a checkpoint. A `base` row does not depend on earlier rows. */
export interface DeltaRow {
  readonly channel: string;
  readonly kind: Delta["kind"];
  readonly base: boolean;
  /** Number of items of an `append`, or of patches of a `patch`; absent for a single change. */
  readonly count?: number | undefined;
  readonly text: string;
}

/**
 * Status of a run. `crashed` is never stored: a stored `running` reads as `crashed` when the store finds the owner
 * dead.
 */
export type RunStatus = (typeof runStatuses)[number];

/** All statuses, in the order of a run's life cycle. */
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

/** Nodes before and after which a run pauses. */
export interface SavedBreakpoints {
  readonly before: readonly string[];
  readonly after: readonly string[];
}

/** An execution on a thread. */
export interface RunRow {
  readonly id: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly version: number;
  readonly status: RunStatus;
  readonly attempt: number;
  /** Start time; for a queued run the time of queueing. */
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** Error that failed the run, or the reason for a pause or a park. */
  readonly error?: ErrorRecord | undefined;
  /** Reason of the cancellation. */
  readonly reason?: string | undefined;
  /** Idempotency key of the run: unique in its thread. */
  readonly key?: string | undefined;
  /**
   * Short hash of the graph, the input and the metadata of a run with a key: tells a repeated submission from
   * another one under the same key.
   */
  readonly bodyHash?: string | undefined;
  /** Idempotency key of the last resume that continued the run. */
  readonly resumeKey?: string | undefined;
  /** Plain data passed with the input, for filters of lists. */
  readonly metadata?: JsonObject | undefined;
  /** Tenant of the thread. */
  readonly tenant?: string | undefined;
  /** Id of the user who started the run. */
  readonly owner?: string | undefined;
  /** Breakpoints of the run, kept by every resume. */
  readonly breakpoints?: SavedBreakpoints | undefined;
  /** Encoded input of a queued run. */
  readonly input?: string | undefined;
  /** Time of queueing; absent for a run that was never queued. A delayed run is queued at its start time. */
  readonly queuedAt?: number | undefined;
  /** Priority in the queue: an integer, higher first. Default 0. */
  readonly priority?: number | undefined;
  /**
   * Earliest start of a delayed run, in milliseconds since the epoch: the run has the status `queued` and is not in
   * the queue of its thread. Absent once the run is in the queue.
   */
  readonly startAt?: number | undefined;
  /** Handling of a busy thread when a delayed run enters the queue; absent: the run waits. */
  readonly onBusy?: "reject" | StopKind | undefined;
  /** Debounce key of a delayed run. */
  readonly debounceKey?: string | undefined;
  /** Time at which an engine continues the paused run; only in the status `paused`. */
  readonly wakeAt?: number | undefined;
  /** For a queued run: the run to pre-empt, and how. */
  readonly stops?: { readonly run: string; readonly how: StopKind } | undefined;
  /** Number of recoveries after process deaths since the thread reached checkpoint `at`. */
  readonly recovered?: { readonly count: number; readonly at: number } | undefined;
}

/**
 * Pre-emption of the previous run by a new input. Both fire the signals of the run: `cancel` keeps its finished
 * tasks, `rollback` discards the run.
 */
export type StopKind = "cancel" | "rollback";

/**
 * Retention limits: the newest `keepLast` checkpoints of each namespace, and checkpoints written at `since` or later.
 */
export interface Retention {
  readonly keepLast?: number | undefined;
  readonly since?: number | undefined;
}
