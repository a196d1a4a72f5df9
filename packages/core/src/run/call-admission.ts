/** Whether a call is let in among the others of its message: in call order where slots are counted, and never twice. */
import type { EffectRow } from "../checkpoint/journal.ts";
import type { CallAtWork, OpenCall } from "./call-at-work.ts";
import { elsewhereQuestion } from "./call-elsewhere.ts";
import { clientQuestion } from "./client-call.ts";
import type { Decided } from "./decide-call.ts";
import { prepare } from "./prepare-call.ts";
import type { TaskScope } from "./scope.ts";
import type { Session } from "./session.ts";

/** Whether it goes on with what was begun before: its start is recorded, or a question about it has its answer. */
export function hasBegun(
  { saved, within }: Session,
  { task }: TaskScope,
  { key }: OpenCall,
  known: EffectRow | undefined,
): boolean {
  if (known !== undefined) return true;
  if (saved === undefined || saved.interrupts.size === 0) return false;
  const questions = [`${task.id}:${key}`, clientQuestion(task, key), elsewhereQuestion(task, key)];
  return questions.some((id) => saved.interrupts.get(`${within?.ids ?? ""}${id}`)?.answer !== undefined);
}

/** What is decided about the call. Where slots are counted, calls are decided about in their order. */
export function admitted(call: CallAtWork): Decided | Promise<Decided> {
  const { limit } = call.set;
  if (limit === undefined) return prepare(call);
  return limit.inTurn(async () => {
    let isKept = false;
    try {
      const decided = await prepare(call);
      isKept = decided.kind !== "answer";
      return decided;
    } finally {
      if (call.hasSlot && !isKept) limit.giveBack();
    }
  });
}
