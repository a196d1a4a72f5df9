/**
 * Inbox delivery of a superstep. Messages are reduced after all task writes, in the checkpoint that removes the messages
 * from the inbox, so each message is delivered exactly once. Messages never come between a tool call and its result, and
 * never into the last checkpoint of a run, which no model reads: such messages wait for the next run. The messages of an
 * input pass the same checks.
 */

import { isStatewrightError, StatewrightError, toErrorRecord } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import type { ConversationMessageKind } from "../../checkpoint/inbox-message.ts";
import { toBranchPrefix } from "../../checkpoint/thread-rules.ts";
import type { Plan } from "../../compile/plan.ts";
import { START } from "../../define/edge.ts";
import { listToolCalls, type Message, type MessageWrite } from "../../model/message.ts";
import { hasAnyId } from "../../state/channel.ts";
import type { Codec } from "../../state/codec.ts";
import { listPendingCalls } from "../conversation/pending-calls.ts";
import { type EventEmitter, emit } from "../events/events.ts";
import { hasConversation, type QueuedMessage } from "../session/inbox/inbox.ts";
import type { Position } from "../session/parts/position.ts";
import { hasEmptyId } from "../session/reduce-writes.ts";
import { readUpdate, type State, type Write } from "../session/returns.ts";
import type { Session } from "../session/session.ts";
import type { StepResult } from "../session/step-result.ts";
import { validateWrites } from "../session/validate-writes.ts";
import { findTranscriptIssue } from "./transcript-issue.ts";

/** A superstep with the inbox messages that it delivers. */
export interface InboxDelivery {
  readonly result: StepResult;
  readonly delivered: readonly QueuedMessage[];
}

/** Delivers waiting inbox messages with a superstep; `reduceWith` reduces the superstep with additional writes. */
export async function drainInbox(
  session: Pick<Session, "env" | "position" | "events" | "signals" | "inboxes">,
  result: StepResult,
  reduceWith: (writes: readonly Write[]) => StepResult,
): Promise<InboxDelivery> {
  if (!canDeliver(session, result.state)) return { result, delivered: [] };
  const ends = result.tasks.length === 0;
  const waiting = await listWaitingMessages(session, ends ? "last" : undefined);
  const unreadable = session.inboxes.inbox.listUnreadable();
  const steering = selectMessages(session.position, waiting, "steer");
  const choices = [steering, ...(ends ? [selectMessages(session.position, waiting, "followUp")] : [])];
  for (const choice of choices) {
    if (choice.length === 0) continue;
    const messages = assignNewIds(result.state["messages"] as readonly Message[], choice, session.position.run.branch);
    const next = tryDeliver(session.position, session.events, session.env.codec, {
      inboxMessages: messages,
      reduceWith,
    });
    if (next !== undefined && next.tasks.length > 0) return { result: next, delivered: [...unreadable, ...messages] };
  }
  return { result, delivered: unreadable };
}

/** Filters steering messages. */
export function filterSteering(inboxMessages: readonly QueuedMessage[]): readonly QueuedMessage[] {
  return inboxMessages.filter(({ kind }) => kind === "steer");
}

/**
 * Lists steering messages that no run has delivered: they come before the input of the next run. Unreadable rows are
 * listed too, so that they leave the inbox.
 */
export async function listUndeliveredSteering(
  session: Pick<Session, "position" | "progress" | "events" | "signals" | "inboxes">,
): Promise<readonly QueuedMessage[]> {
  if (!canDeliver(session, session.progress.state)) return [];
  const waiting = filterSteering(await listWaitingMessages(session));
  const messages = assignNewIds(
    session.progress.state["messages"] as readonly Message[],
    waiting,
    session.position.run.branch,
  );
  return [...session.inboxes.inbox.listUnreadable(), ...messages];
}

/** Converts inbox messages to channel writes. */
export function toInboxWrites(
  { plan }: Position,
  codec: Codec,
  inboxMessages: readonly QueuedMessage[],
): readonly Write[] {
  if (inboxMessages.every(({ messages }) => messages.length === 0)) return [];
  const writes = readUpdate(plan, START, { messages: inboxMessages.flatMap(({ messages }) => messages) });
  validateWrites(plan, codec, writes, { label: "inbox messages for" });
  return writes;
}

/** Returns true if the inbox holds a message for this state, so that the run does not end here. */
export async function hasDeliverableMessage(
  session: Pick<Session, "position" | "events" | "signals" | "inboxes">,
  state: State,
): Promise<boolean> {
  return canDeliver(session, state) && (await listWaitingMessages(session, "last")).length > 0;
}

/** Returns true if messages can be delivered: the run is not being ended, and no tool call is pending. */
function canDeliver(
  {
    position: { nesting, plan },
    signals: { abort },
    inboxes: { inbox },
  }: Pick<Session, "position" | "signals" | "inboxes">,
  state: State,
): boolean {
  if (!inbox.mayHaveMessages() || nesting !== undefined || !hasConversation(plan)) return false;
  if (abort.signal.aborted) return false;
  return listPendingCalls(state["messages"] as readonly Message[]).calls.length === 0;
}

/** Lists waiting inbox messages. A read failure is reported and returns no messages, which stay in the inbox. */
export async function listWaitingMessages(
  session: Pick<Session, "position" | "events" | "inboxes">,
  boundary?: "last",
): Promise<readonly QueuedMessage[]> {
  try {
    return await session.inboxes.inbox.listMessages(boundary);
  } catch (thrown) {
    reportDeliveryFailure(session.position, session.events, thrown);
    return [];
  }
}

function reportDeliveryFailure(position: Position, events: EventEmitter, thrown: unknown): void {
  const error = toErrorRecord(thrown);
  emit(events, { type: "inbox.failed", error });
  events.world.log("warn", "inbox messages could not be delivered to a run", { thread: position.run.thread, error });
}

function selectMessages(
  { plan }: Position,
  waiting: readonly QueuedMessage[],
  kind: ConversationMessageKind,
): readonly QueuedMessage[] {
  const inboxMessages = waiting.filter((message) => message.kind === kind);
  return plan.graph.inbox === "one" ? inboxMessages.slice(0, 1) : inboxMessages;
}

/** Reduces the superstep with these messages; undefined when the graph rejects them. */
function tryDeliver(
  position: Position,
  events: EventEmitter,
  codec: Codec,
  {
    inboxMessages,
    reduceWith,
  }: {
    readonly inboxMessages: readonly QueuedMessage[];
    readonly reduceWith: (writes: readonly Write[]) => StepResult;
  },
): StepResult | undefined {
  try {
    return reduceWith(toInboxWrites(position, codec, inboxMessages));
  } catch (thrown) {
    if (!isStatewrightError(thrown)) throw thrown;
    reportDeliveryFailure(position, events, thrown);
    return undefined;
  }
}

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

/** Identical messages with the same id count as a single message. */
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
  if (!removes && !messages.some(isInToolCall) && !hasAnyId(known, messages)) return undefined;
  const roles = new Map(known.map(({ id, role }) => [id, role]));
  for (const { id, role } of messages) {
    const knownRole = roles.get(id);
    if (knownRole !== undefined && knownRole !== role)
      return `has a message of the role ${role} with the id "${id}", but the conversation has that id for a message of the role ${knownRole}`;
  }
  const broken = findTranscriptIssue(known) === undefined ? findTranscriptIssue(getResult()) : undefined;
  return broken && `would separate tool calls from their answers: ${broken}`;
}

function isInToolCall(message: Message): boolean {
  return message.role === "tool" || (message.role === "assistant" && listToolCalls(message).length > 0);
}

/** Assigns new ids to inbox messages whose ids occur in the conversation or in another inbox message. */
function assignNewIds(
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
