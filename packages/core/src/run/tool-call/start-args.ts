/**
 * Start arguments of a `once` tool call that hooks or people changed. The arguments are journaled before the call
 * starts: after a crash, the in-doubt interrupt shows the started arguments, even if hooks now change them otherwise.
 */

import { deepFreeze } from "../../base/json.ts";
import type { Redactor } from "../../base/redaction/redactor.ts";
import type { ToolCall } from "../../tool/definition/tool.ts";
import { createAuxiliaryRow, getAuxiliaryTaskId } from "../journal/ledger.ts";
import {
  awaitDurable,
  commitEffect,
  type PendingEffect,
  type Persistence,
  recordEffect,
  toJournalKey,
} from "../session/parts/persistence.ts";
import type { ToolCallContext } from "./context.ts";

/** Journals the start arguments of a call; they become durable with the start row that is recorded next. */
export function recordStartArgs(call: ToolCallContext): void {
  const { journal, toolCall, parsedCall } = call;
  call.startedCall = toolCall;
  const { saved } = journal;
  if (saved === undefined || (toolCall === parsedCall && !saved.rows.has(getArgsKey(call)))) return;
  recordEffect(saved, createArgsRow(call, saved));
}

/** Makes arguments durable that a hook around the call changed after the start row was recorded. */
export function recordChangedArgs(call: ToolCallContext, saved: Persistence): Promise<void> {
  call.startedCall = call.toolCall;
  return awaitDurable((onCommitted) => commitEffect(saved, { ...createArgsRow(call, saved), onCommitted }));
}

/** Returns the call as a crashed process started it, or undefined when its arguments could not be saved. */
export function loadStartedCall(call: ToolCallContext): ToolCall | undefined {
  const { journal, env, parsedCall = call.toolCall } = call;
  const row = journal.saved?.rows.get(getArgsKey(call));
  if (row === undefined) return parsedCall;
  return row.outcome === undefined ? undefined : deepFreeze({ ...parsedCall, args: env.codec.decode(row.outcome) });
}

function createArgsRow(call: ToolCallContext, { codec }: Persistence): PendingEffect {
  const { env, position, scope, key, toolCall } = call;
  const outcome = encodeArgs(env.redactor, codec, toolCall.args);
  return {
    row: {
      ...createAuxiliaryRow(position, env.world, scope.task, { auxiliary: "args", key }),
      outcome,
    },
  };
}

/** Returns undefined for arguments that cannot be encoded, or must not be saved because a hook added a secret. */
function encodeArgs(redactor: Redactor, codec: Persistence["codec"], args: unknown): string | undefined {
  if (redactor.redact(args) !== args) return undefined;
  try {
    return codec.encode(args, "the arguments of a tool call");
  } catch {
    return undefined;
  }
}

function getArgsKey({ position, scope, key }: ToolCallContext): string {
  return toJournalKey(position.step, getAuxiliaryTaskId(scope.task.id, "args"), key);
}
