/**
 * Issues of a conversation for which a provider would refuse each further request: a tool call without its answer, or
 * an answer without its call.
 */
import type { Task } from "../../checkpoint/checkpoint.ts";
import type { Plan } from "../../compile/plan.ts";
import { listToolCalls, type Message, type MessageWrite, type ToolMessage } from "../../model/message.ts";
import { listPendingCalls, type PendingCall } from "../conversation/pending-calls.ts";
import { reduceWrites } from "../session/reduce-writes.ts";
import type { State, Write } from "../session/returns.ts";

/** Returns the transcript issue that a change introduces into a previously valid conversation, or undefined. */
export function findIntroducedIssue({ graph }: Plan, before: State, after: State): string | undefined {
  for (const [name, { kind }] of Object.entries(graph.state.channels)) {
    if (kind !== "messages" || before[name] === after[name]) continue;
    const broken = findTranscriptIssue((after[name] ?? []) as readonly Message[]);
    if (broken !== undefined && findTranscriptIssue((before[name] ?? []) as readonly Message[]) === undefined)
      return broken;
  }
  return undefined;
}

/**
 * Returns the first issue for which a provider would reject the transcript, or undefined. Calls at the end may still
 * be unanswered, unless `end` is "answered".
 */
export function findTranscriptIssue(
  messages: readonly Message[],
  end: "open" | "answered" = "open",
): string | undefined {
  let open: readonly string[] = [];
  for (const message of messages) {
    if (message.role === "tool") {
      if (!open.includes(message.callId)) return `the message "${message.id}" would answer no call`;
      open = open.filter((id) => id !== message.callId);
      continue;
    }
    if (open.length > 0) return `the call "${open[0]}" would have no answer`;
    if (message.role === "assistant") open = listToolCalls(message).map(({ id }) => id);
  }
  return end === "answered" && open.length > 0 ? `the call "${open[0]}" would have no answer` : undefined;
}

/**
 * Returns the issue that the command of a tool would introduce into a conversation, or undefined. A command may answer
 * no pending call, since each call has the answer of its tool, and may leave no call open, since only a model makes
 * calls.
 */
export function findCommandIssue(plan: Plan, state: State, task: Task, writes: readonly Write[]): string | undefined {
  const { channels } = plan.graph.state;
  const written = writes.filter(({ channel }) => channels[channel]?.kind === "messages");
  if (written.length === 0) return undefined;
  const known = (state["messages"] ?? []) as readonly Message[];
  const { calls } = listPendingCalls(known);
  const callIds = new Set(calls.map(({ block }) => block.id));
  for (const message of written.flatMap(({ value }) => value as MessageWrite | readonly MessageWrite[])) {
    if ("remove" in message || message.role !== "tool" || !callIds.has(message.callId)) continue;
    return `the message "${message.id}" would answer the call "${message.callId}" in place of its tool`;
  }
  const answers: Write = { channel: "messages", kind: "reduce", value: calls.map(createPlaceholder) };
  const before = reduceWrites(plan, state, [{ task, outcome: { writes: [answers], routes: [] } }], []).state;
  const outcome = { writes: [answers, ...written], routes: [] };
  const after = reduceWrites(plan, state, [{ task, outcome }], []).state;
  for (const channel of new Set(written.map(({ channel }) => channel))) {
    const issue = findTranscriptIssue((after[channel] ?? []) as readonly Message[], "answered");
    if (
      issue !== undefined &&
      findTranscriptIssue((before[channel] ?? []) as readonly Message[], "answered") === undefined
    )
      return issue;
  }
  return undefined;
}

/** Answer of a call that has no answer yet. */
function createPlaceholder({ block }: PendingCall): ToolMessage {
  return { role: "tool", id: `pending:${block.id}`, callId: block.id, name: block.name, content: [], isError: false };
}
