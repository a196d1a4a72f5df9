/** Whether a call is let in among the others of its message: in call order where slots are counted, and never twice. */
import type { EffectRow, InterruptRow } from "../../checkpoint/journal.ts";
import type { TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { clientQuestion } from "./client-call.ts";
import type { CallAtWork, OpenCall } from "./context.ts";
import type { Decided } from "./decide-call.ts";
import { prepare } from "./prepare-call.ts";
import { elsewhereQuestion } from "./prior-call.ts";

/** Whether it goes on with what was begun before: its start is recorded, or a question about it has its answer. */
export function hasBegun(session: Session, scope: TaskScope, call: OpenCall, known: EffectRow | undefined): boolean {
  return known !== undefined || questionsAbout(session, scope, call).some(({ answer }) => answer !== undefined);
}

/** Whether a person was asked about it, whatever came of that. */
export function isAskedAbout(session: Session, scope: TaskScope, call: OpenCall): boolean {
  return questionsAbout(session, scope, call).length > 0;
}

function questionsAbout({ saved, within }: Session, { task }: TaskScope, { key }: OpenCall): readonly InterruptRow[] {
  if (saved === undefined || saved.interrupts.size === 0) return [];
  const ids = [`${task.id}:${key}`, clientQuestion(task, key), elsewhereQuestion(task, key)];
  return ids.flatMap((id) => saved.interrupts.get(`${within?.ids ?? ""}${id}`) ?? []);
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
