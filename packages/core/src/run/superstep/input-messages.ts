/**
 * Messages from outside with ids that the conversation already contains. An input may repeat messages, as a client
 * does that sends the whole conversation on each turn. An input must not separate a tool call from its answers, or
 * replace a message with a message of another role. Inbox messages always get new ids.
 */

import { StatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { toBranchPrefix } from "../../checkpoint/branch-prefix.ts";
import type { Plan } from "../../compile/plan.ts";
import { listToolCalls, type Message, type MessageWrite } from "../../model/message.ts";
import { hasAnyId } from "../../state/message-index.ts";
import type { QueuedMessage } from "../session/inbox/inbox.ts";
import { hasEmptyId } from "../session/message-ids.ts";
import type { State, Write } from "../session/returns.ts";
import { findTranscriptIssue } from "./transcript-issue.ts";

/**
 * Throws `invalid_input` when an input would break a conversation. Runs before the input is applied, while message
 * ids are available.
 */
export function checkInputMessages({ graph }: Plan, state: State, writes: readonly Write[]): void {
  for (const { channel: name, kind, value } of writes) {
    const channel = graph.state.channels[name];
    if (kind !== "reduce" || channel?.kind !== "messages") continue;
    const incoming = (Array.isArray(value) ? value : [value]) as readonly MessageWrite[];
    const known = (state[name] ?? []) as readonly Message[];
    const issue =
      findDuplicate(incoming) ??
      findMisplaced(known, incoming, () => channel.reduce(known, [incoming]).value as readonly Message[]);
    if (issue === undefined) continue;
    throw new StatewrightError("invalid_input", {
      what: `the input of graph "${graph.name}" ${issue}`,
      next: "Use a new id for each new message; to replace a message of the conversation, use editMessage",
      place: { graph: graph.name, channel: name },
    });
  }
}

/**
 * Throws `invalid_input` for an input that removes messages. An input may come from a client, which must not delete the
 * history.
 */
export function checkNoRemovals({ graph }: Plan, input: unknown): void {
  if (!isPlainObject(input)) return;
  for (const [name, { kind }] of Object.entries(graph.state.channels)) {
    const written = kind === "messages" && Object.hasOwn(input, name) ? input[name] : undefined;
    const removal = (Array.isArray(written) ? written : [written]).find(isRemoval);
    if (removal === undefined) continue;
    throw new StatewrightError("invalid_input", {
      what: `the input of graph "${graph.name}" removes the message ${JSON.stringify(removal.remove)}`,
      next: "To remove messages, use the option removeMessages of run, or updateState",
      place: { graph: graph.name, channel: name },
    });
  }
}

function isRemoval(item: unknown): item is { readonly remove: unknown } {
  return isPlainObject(item) && Object.hasOwn(item, "remove");
}

/** Identical messages with the same id count as one message. */
function findDuplicate(incoming: readonly MessageWrite[]): string | undefined {
  if (incoming.length < 2) return undefined;
  const seen = new Map<string, Message>();
  for (const message of incoming) {
    if ("remove" in message) continue;
    const first = seen.get(message.id);
    if (first === undefined) seen.set(message.id, message);
    else if (JSON.stringify(first) !== JSON.stringify(message))
      return `has two different messages with the id "${message.id}"`;
  }
  return undefined;
}

function findMisplaced(
  known: readonly Message[],
  incoming: readonly MessageWrite[],
  getResult: () => readonly Message[],
): string | undefined {
  const removes = incoming.some((message) => "remove" in message);
  const messages = incoming.filter((message): message is Message => !("remove" in message));
  if (!removes && !messages.some(isPartOfToolCall) && !hasAnyId(known, messages)) return undefined;
  const roles = new Map(known.map(({ id, role }) => [id, role]));
  for (const { id, role } of messages) {
    const knownRole = roles.get(id);
    if (knownRole !== undefined && knownRole !== role)
      return `has a message of the role ${role} with the id "${id}", but the conversation has that id for a message of the role ${knownRole}`;
  }
  const broken = findTranscriptIssue(known) === undefined ? findTranscriptIssue(getResult()) : undefined;
  return broken && `would separate tool calls from their answers: ${broken}`;
}

function isPartOfToolCall(message: Message): boolean {
  return message.role === "tool" || (message.role === "assistant" && listToolCalls(message).length > 0);
}

/** Assigns new ids to inbox messages whose ids occur in the conversation or in another inbox message. */
export function assignNewIds(
  known: readonly Message[],
  inboxMessages: readonly QueuedMessage[],
  branch: string,
): readonly QueuedMessage[] {
  const incoming = inboxMessages.flatMap(({ messages }) => messages);
  const distinct = new Set(incoming.map(({ id }) => id)).size === incoming.length && !incoming.some(hasEmptyId);
  if (distinct && !hasAnyId(known, incoming)) return inboxMessages;
  const usedIds = new Set(["", ...known.map(({ id }) => id)]);
  return inboxMessages.map((inboxMessage) => ({
    ...inboxMessage,
    messages: inboxMessage.messages.map((message, index) => {
      const id = usedIds.has(message.id) ? `${toBranchPrefix(branch)}${inboxMessage.id}:${index}` : message.id;
      usedIds.add(id);
      return id === message.id ? message : { ...message, id };
    }),
  }));
}
