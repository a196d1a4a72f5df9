/**
 * Auxiliary journal rows of a task, for data known before its outcome. The rows are deleted when the
 * superstep is committed.
 */

import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { EffectRow } from "../../checkpoint/journal.ts";
import type { Position } from "../session/parts/position.ts";

/** Kind of an auxiliary row. */
export type AuxiliaryKind = "args" | "breakpoint" | "ledger" | "longTerm";

/** Returns the task id of auxiliary rows. No real task id has such a suffix. */
export function getAuxiliaryTaskId(id: string, auxiliary: AuxiliaryKind): string {
  return `${id}/${auxiliary}`;
}

/** Creates an auxiliary row of the current superstep. A repetition overwrites the row. */
export function createAuxiliaryRow(
  { step }: Position,
  world: World,
  task: Task,
  { auxiliary, key }: { readonly auxiliary: AuxiliaryKind; readonly key: string },
): EffectRow {
  const now = world.clock.now();
  return {
    step,
    task: getAuxiliaryTaskId(task.id, auxiliary),
    key,
    kind: "task",
    name: task.node,
    effect: "idempotent",
    state: "ok",
    attempts: 1,
    idempotencyKey: "",
    startedAt: now,
    endedAt: now,
  };
}
