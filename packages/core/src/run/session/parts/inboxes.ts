/** Sources of messages for a session. */
import type { Inbox } from "../inbox/inbox.ts";
import type { InboxBuffer } from "../inbox/inbox-buffer.ts";

/** Inboxes of a session: the inbox of the thread, and the mailbox of the run handle. */
export interface Inboxes {
  /** Inbox of the run; shared with inner graphs. */
  readonly inbox: Inbox;
  /** Mailbox of the handle that started the run. */
  readonly mailbox: InboxBuffer | undefined;
}
