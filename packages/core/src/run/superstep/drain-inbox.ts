/**
 * Inbox delivery of a superstep. Messages are reduced after all task writes, in the checkpoint that removes them from
 * the inbox, so each message is delivered exactly once. Messages never come between a tool call and its result, and
 * never into the last checkpoint of a run, where no model would read them: they wait for the next run.
 */

import { isStatewrightError, toErrorRecord } from "../../base/errors.ts";
import type { ConversationMessageKind } from "../../checkpoint/inbox-message.ts";
import { START } from "../../define/edge.ts";
import type { Message } from "../../model/message.ts";
import type { Codec } from "../../state/codec.ts";
import { listPendingCalls } from "../conversation/pending-calls.ts";
import { type EventEmitter, emit } from "../events/event-emitter.ts";
import { hasConversation, type QueuedMessage } from "../session/inbox/inbox.ts";
import type { Position } from "../session/parts/position.ts";
import { readUpdate, type State, type Write } from "../session/returns.ts";
import type { Session } from "../session/session.ts";
import type { StepResult } from "../session/step-result.ts";
import { validateWrites } from "../session/validate-writes.ts";
import { assignNewIds } from "./input-messages.ts";

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
