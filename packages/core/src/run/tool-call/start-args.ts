/**
 * The arguments that a `once` call begins with, where hooks or people have changed those of the model. They are journaled
 * before it begins, so that a call in doubt is asked about with them, whatever hooks make of it by then.
 */
import { deepFreeze } from "../../base/json.ts";
import type { ToolCall } from "../../tool/definition/tool.ts";
import { besideRow, besideTask } from "../journal/auxiliary-row.ts";
import { journalKey, type PendingEffect, record, recordNow, type Saved, type Session } from "../session/session.ts";
import type { CallAtWork } from "./context.ts";

/** Journal what a call is about to begin with: it is durable with the start that is recorded next. */
export function recordArgs(call: CallAtWork): void {
  const { session, toolCall, asRead } = call;
  call.begunWith = toolCall;
  const { saved } = session;
  if (saved === undefined || (toolCall === asRead && !saved.journal.has(placeOfArgs(call)))) return;
  record(session, saved, rowOfArgs(call, saved));
}

/** Make arguments durable that a hook around a call gives it after its start was recorded. */
export function recordOtherArgs(call: CallAtWork, saved: Saved): Promise<void> {
  call.begunWith = call.toolCall;
  return new Promise((resolve, reject) => {
    const told = (failure?: unknown): void => (failure === undefined ? resolve() : reject(failure));
    recordNow(call.session, saved, { ...rowOfArgs(call, saved), told });
  });
}

/** The call as it began in a process that has died since; nothing where its arguments could not be saved. */
export function asBegun(call: CallAtWork): ToolCall | undefined {
  const { session, asRead = call.toolCall } = call;
  const row = session.saved?.journal.get(placeOfArgs(call));
  if (row === undefined) return asRead;
  return row.outcome === undefined ? undefined : deepFreeze({ ...asRead, args: session.codec.decode(row.outcome) });
}

function rowOfArgs(call: CallAtWork, { codec }: Saved): PendingEffect {
  const { session, scope, key, toolCall } = call;
  const outcome = textOf(session, codec, toolCall.args);
  return { row: { ...besideRow(session, scope.task, "args", key), outcome }, encode: undefined, told: undefined };
}

/** Nothing for what cannot be saved, and for what must not be: a hook may have put a secret in. */
function textOf({ mask }: Session, codec: Saved["codec"], args: unknown): string | undefined {
  if (mask.hide(args) !== args) return undefined;
  try {
    return codec.encode(args, "the arguments of a call");
  } catch {
    return undefined;
  }
}

function placeOfArgs({ session, scope, key }: CallAtWork): string {
  return journalKey(session.step, besideTask(scope.task.id, "args"), key);
}
