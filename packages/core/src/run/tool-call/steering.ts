/**
 * Steering of a tool node: checks the inbox between batches of tool calls. Calls that have not started are then
 * skipped, with an answer that gives the reason; running calls are never cancelled, and keep their results.
 */

import type { ToolNode } from "../../define/tool-node.ts";
import { ToolError } from "../../tool/definition/tool-error.ts";
import { hasConversation, type QueuedMessage } from "../session/inbox/inbox.ts";
import type { Session } from "../session/session.ts";
import { filterSteering, listWaitingMessages } from "../superstep/drain-inbox.ts";

/** Returns the answer for skipped calls when a steering message is queued; undefined otherwise. */
export async function checkSteering(
  { steering }: ToolNode<never, never>,
  session: Pick<Session, "position" | "events" | "signals" | "inboxes">,
): Promise<ToolError | undefined> {
  const { nesting, plan } = session.position;
  const { abort } = session.signals;
  const { inbox } = session.inboxes;
  if (steering === "finish-batch" || !inbox.mayHaveMessages()) return undefined;
  if (nesting !== undefined || abort.signal.aborted || !hasConversation(plan)) return undefined;
  const steer = filterSteering(await listWaitingMessages(session));
  if (steer.length === 0 || abort.signal.aborted) return undefined;
  inbox.notifyArrival(steer.map(({ id }) => id));
  return new ToolError("skipped", `Skipped: ${describeSender(steer)} is queued and comes first.`);
}

/** Poll interval for messages from other processes while tools run, in milliseconds. */
const pollIntervalMs = 1_000;

/**
 * Polls the inbox for messages from other processes, so that long waits can end early; the returned function stops
 * polling.
 */
export function watchInbox(session: Pick<Session, "env" | "position" | "events" | "journal" | "inboxes">): () => void {
  const { world } = session.env;
  const { nesting } = session.position;
  const { saved } = session.journal;
  const { inbox } = session.inboxes;
  if (saved === undefined || saved.store.local === true || nesting !== undefined || !inbox.mayHaveMessages())
    return doNothing;
  let isStopped = false;
  const poll = async (): Promise<void> => {
    const steer = filterSteering(await listWaitingMessages(session));
    if (isStopped) return;
    if (steer.length > 0) inbox.notifyArrival(steer.map(({ id }) => id));
    else cancel = world.schedule.after(pollIntervalMs, () => void poll());
  };
  let cancel = doNothing;
  // Many tools finish before this point and need no timer.
  world.schedule.soon(() => {
    if (!isStopped) cancel = world.schedule.after(pollIntervalMs, () => void poll());
  });
  return () => {
    isStopped = true;
    cancel();
  };
}

function doNothing(): void {
  // No other process can have sent a message, or polling has not started.
}

/** Describes the sender: a system message is not attributed to the user. */
function describeSender(inboxMessages: readonly QueuedMessage[]): string {
  const isFromUser = inboxMessages.some(({ messages }) => messages.some(({ role }) => role === "user"));
  return isFromUser ? "a message of the user" : "a note of the system";
}
