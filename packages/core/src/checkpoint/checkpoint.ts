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
  /** Supersteps that the run has taken, over all its resumes: what the step limit counts. */
  readonly steps?: number;
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
