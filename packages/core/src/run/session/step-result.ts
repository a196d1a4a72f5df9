/** Finished tasks of a superstep, and the checkpoint that they lead to. */
import type { Control, Task } from "../../checkpoint/checkpoint.ts";
import type { Delta } from "../../state/delta.ts";
import type { State, TaskOutcome } from "./returns.ts";

/** A task with its outcome. */
export interface FinishedTask {
  readonly task: Task;
  readonly outcome: TaskOutcome;
}

/** Next checkpoint, without its machine state. */
export interface StepResult {
  readonly state: State;
  readonly deltas: Readonly<Record<string, Delta>>;
  readonly tasks: readonly Task[];
  readonly free?: Control["free"];
  readonly inputs: readonly unknown[];
  readonly joins: Control["joins"];
  readonly deferred?: Control["deferred"];
}
