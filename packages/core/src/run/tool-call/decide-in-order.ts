/** Admits the tool calls of a message: in call order when call slots are limited, and each call only once. */

import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import type { PendingCall } from "../conversation/pending-calls.ts";
import type { Journal } from "../session/parts/journal.ts";
import type { Position } from "../session/parts/position.ts";
import type { TaskScope } from "../session/scope.ts";
import { getClientInterruptId } from "./client-call.ts";
import type { ToolCallContext } from "./context.ts";
import type { CallDecision } from "./decide-call.ts";
import { prepareCall } from "./prepare-call.ts";
import { getPriorCallInterruptId } from "./prior-call.ts";

/** True when the call continues earlier work: its start is recorded, or an interrupt about the call has an answer. */
export function hasStarted(
  position: Position,
  journal: Journal,
  scope: TaskScope,
  { call, known }: { readonly call: PendingCall; readonly known: EffectRow | undefined },
): boolean {
  return (
    known !== undefined || findCallInterrupts(position, journal, scope, call).some(({ answer }) => answer !== undefined)
  );
}

/** True when an interrupt about the call was raised, answered or not. */
export function hasCallInterrupt(position: Position, journal: Journal, scope: TaskScope, call: PendingCall): boolean {
  return findCallInterrupts(position, journal, scope, call).length > 0;
}

function findCallInterrupts(
  { nesting }: Position,
  { saved }: Journal,
  { task }: TaskScope,
  { key }: PendingCall,
): readonly InterruptRow[] {
  if (saved === undefined || saved.interrupts.size === 0) return [];
  const ids = [`${task.id}:${key}`, getClientInterruptId(task, key), getPriorCallInterruptId(task, key)];
  return ids.flatMap((id) => saved.interrupts.get(`${nesting?.idPrefix ?? ""}${id}`) ?? []);
}

/** Decides about the call; in call order when call slots are limited. */
export function decideInOrder(call: ToolCallContext): CallDecision | Promise<CallDecision> {
  const { limit } = call.batch;
  if (limit === undefined) return prepareCall(call);
  return limit.runInOrder(async () => {
    let isSlotUsed = false;
    try {
      const decision = await prepareCall(call);
      isSlotUsed = decision.kind !== "answer";
      return decision;
    } finally {
      if (call.hasSlot && !isSlotUsed) limit.release();
    }
  });
}
