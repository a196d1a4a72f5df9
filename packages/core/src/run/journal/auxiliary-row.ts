/** Rows of the journal beside a task, for what is known before its outcome. They go when its superstep is folded. */
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Session } from "../session/session.ts";

/** What such a row holds. */
export type Beside = "args" | "ledger" | "longTerm";

/** The task that such rows name: none has an id that ends so. */
export function besideTask(id: string, what: Beside): string {
  return `${id}/${what}`;
}

/** A row of the superstep at work, which is written over when what it tells of is done again. */
export function besideRow({ step, world }: Session, task: Task, what: Beside, key: string): EffectRow {
  const at = world.clock.now();
  return {
    step,
    task: besideTask(task.id, what),
    key,
    kind: "task",
    name: task.node,
    effect: "idempotent",
    state: "ok",
    attempts: 1,
    idempotencyKey: "",
    startedAt: at,
    endedAt: at,
  };
}
