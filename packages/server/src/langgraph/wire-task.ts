/** Tasks in both protocols. */
import type { RunEvent } from "@statewright/core";
import type { WireObject } from "./to-wire-message.ts";
import { toWireValue } from "./to-wire-values.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

/** Finished task whose result comes with the next checkpoint. */
export interface FinishedTask {
  readonly id: string;
  readonly name: string;
}

/** Data of a task that has started or failed. Adds a completed one to `finished`: its result is written with its step. */
export function mapTaskEvent(
  event: EventOf<"task.started" | "task.completed" | "task.failed">,
  finished: FinishedTask[],
): { readonly type: "task" | "task_result"; readonly data: WireObject } | undefined {
  const task = { id: event.task, name: event.node };
  switch (event.type) {
    case "task.started":
      return {
        type: "task",
        data: { ...task, input: toWireValue(event.input ?? null), triggers: [], interrupts: [] },
      };
    case "task.completed":
      finished.push(task);
      return undefined;
    case "task.failed":
      return {
        type: "task_result",
        data: { ...task, error: event.error.code ?? "internal", result: [], interrupts: [] },
      };
  }
}

/** Data of a task that has ended with its step. */
export function createTaskResultData({ id, name }: FinishedTask, result: readonly unknown[]): WireObject {
  return { id, name, error: null, interrupts: [], result };
}
