/** Inbox of a branch in the memory store: an immutable list replaced by each write. */
import { checkId } from "../../base/ids.ts";
import type { InboxMessage, InboxMessageWrite } from "../inbox-message.ts";
import type { Commit } from "../store.ts";
import { getBranch, type Threads } from "./memory-thread.ts";

/** Adds a message to the inbox of a branch, once per message id. */
export function postMessage(threads: Threads, { thread: id, branch, ...message }: InboxMessageWrite): InboxMessage {
  checkId("inbox message", message.id);
  const { namespace } = getBranch(threads, id, branch);
  const known = listWaiting(namespace.inbox).find((waiting) => waiting.id === message.id);
  if (known !== undefined) return known;
  const row = { ...message, branch: namespace.name };
  namespace.inbox = [...namespace.inbox, row];
  return row;
}

/** Lists the messages not yet received by a run. */
export function listWaiting(inbox: readonly InboxMessage[]): readonly InboxMessage[] {
  return inbox.filter(({ taken }) => taken === undefined);
}

/**
 * Returns the inbox after a commit: its run receives messages, returns received messages, or ends and drops its
 * received messages.
 */
export function applyToInbox(inbox: readonly InboxMessage[], commit: Commit): readonly InboxMessage[] {
  const { deliveredMessages = [], rolledBackRun, checkpoint, run } = commit;
  const receiver = checkpoint?.row.run;
  const ended = run?.status === "done" || run?.status === "cancelled" ? run.id : undefined;
  let remaining = inbox;
  // Same id sent and received again: one message.
  if (deliveredMessages.length > 0 && receiver !== undefined)
    remaining = remaining
      .filter((message) => message.taken !== receiver || !deliveredMessages.includes(message.id))
      .map((message) =>
        message.taken === undefined && deliveredMessages.includes(message.id)
          ? { ...message, taken: receiver }
          : message,
      );
  if (rolledBackRun !== undefined) remaining = requeueMessages(remaining, rolledBackRun);
  return ended === undefined ? remaining : remaining.filter((message) => message.taken !== ended);
}

function requeueMessages(inbox: readonly InboxMessage[], run: string): readonly InboxMessage[] {
  const waiting = new Set(listWaiting(inbox).map(({ id }) => id));
  return inbox.flatMap((message): readonly InboxMessage[] => {
    if (message.taken !== run) return [message];
    const { taken: _, ...requeued } = message;
    return waiting.has(message.id) ? [] : [requeued];
  });
}
