/**
 * Cancels pending tool calls: each call gets its recorded result or the reason as its answer, so that the
 * conversation stays valid.
 */

import type { EffectRow } from "../../checkpoint/journal.ts";
import { START } from "../../define/edge.ts";
import type { LongTermChange } from "../../long-term/rows.ts";
import { listToolCalls, type Message, type MessageWrite, type ToolMessage } from "../../model/message.ts";
import type { Codec } from "../../state/codec.ts";
import type { ToolResult } from "../../tool/result.ts";
import { listPendingCalls, type PendingCall } from "../conversation/pending-calls.ts";
import { findJournaledChanges } from "../journal/long-term-writes.ts";
import type { Persistence } from "../session/parts/persistence.ts";
import { createMessageId, type Position } from "../session/parts/position.ts";
import type { Progress } from "../session/parts/progress.ts";
import { readUpdate, type State, type Write } from "../session/returns.ts";

/** Writes that answer pending calls, and long-term store changes of the executed calls. */
export interface CancelledCalls {
  readonly writes: readonly Write[];
  readonly longTerm: readonly LongTermChange[];
}

/** Options of `cancelPendingCalls`. */
interface CancelPendingCallsOptions {
  readonly state: State;
  readonly reason: string;
  readonly isIncluded?: ((call: PendingCall) => boolean) | undefined;
}

/**
 * Creates the answers to the pending calls of the last assistant message, or to the calls that `isIncluded` selects.
 */
export function cancelPendingCalls(
  { plan, step, run }: Position,
  codec: Codec,
  journal: readonly EffectRow[],
  { state, reason, isIncluded }: CancelPendingCallsOptions,
): CancelledCalls | undefined {
  if (plan.graph.state.channels["messages"]?.kind !== "messages") return undefined;
  const { renamed, calls: pending } = listPendingCalls(state["messages"] as readonly Message[]);
  const calls = isIncluded === undefined ? pending : pending.filter(isIncluded);
  if (calls.length === 0) return undefined;
  const answers = calls.map(({ block, key: callKey }) => {
    const row = journal.findLast(({ kind, key }) => kind === "tool" && key === callKey);
    const result = decodeResult(codec, row);
    const text =
      row === undefined ? `Not executed: ${reason}.` : `Stopped: ${reason}. It is not known if the call took effect.`;
    const message: ToolMessage = {
      role: "tool",
      id: createMessageId({ run }, { id: `${step}:end` }, block.id),
      callId: block.id,
      name: block.name,
      content: result?.content ?? [{ type: "text", text }],
      isError: result?.isError ?? true,
    };
    const longTerm =
      result === undefined || row === undefined ? [] : findJournaledChanges(codec, journal, row.task, row.key);
    return { message, update: result?.command?.update, longTerm };
  });
  const messages = [...renamed, ...answers.map(({ message }) => message)];
  const updates = [{ messages }, ...answers.flatMap(({ update }) => update ?? [])];
  return {
    writes: updates.flatMap((update) => readUpdate(plan, START, update)),
    longTerm: answers.flatMap(({ longTerm }) => longTerm),
  };
}

/**
 * Creates the answers to calls that were pending before an input or update, and are still in the messages of
 * `nextState` without an answer.
 */
export async function cancelUnansweredCalls(
  position: Position,
  progress: Progress,
  { codec, store }: Persistence,
  { nextState, reason }: { readonly nextState: State; readonly reason: string },
): Promise<CancelledCalls | undefined> {
  const { run, namespace, step } = position;
  const { state } = progress;
  const messages = (nextState["messages"] ?? []) as readonly Message[];
  const answered = new Set(messages.flatMap((message) => (message.role === "tool" ? [message.callId] : [])));
  const calls = messages.flatMap((message) => (message.role === "assistant" ? listToolCalls(message) : []));
  const currentIds = new Set(calls.map(({ id }) => id));
  const isUnanswered = ({ block }: PendingCall): boolean => currentIds.has(block.id) && !answered.has(block.id);
  return cancelPendingCalls(position, codec, await store.effects(run.thread, namespace, step), {
    state,
    reason,
    isIncluded: isUnanswered,
  });
}

/** Puts the answers before the next writes, or after answers that the next writes contain themselves. */
export function mergeCancelledWrites(
  { writes: cancelled }: CancelledCalls,
  writes: readonly Write[],
): readonly Write[] {
  const hasAnswers = writes.some(
    ({ channel, value }) =>
      channel === "messages" &&
      (value as readonly MessageWrite[]).some((each) => "role" in each && each.role === "tool"),
  );
  return hasAnswers ? [...writes, ...cancelled] : [...cancelled, ...writes];
}

function decodeResult(codec: Codec, row: EffectRow | undefined): ToolResult | undefined {
  if (row?.state !== "ok" || row.outcome === undefined) return undefined;
  return codec.decode(row.outcome) as ToolResult;
}
