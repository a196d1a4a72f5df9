/** Inbox messages: messages sent to a branch from outside, queued until a run adds the messages to its state. */

/**
 * Delivery of conversation messages: `steer` at the next boundary of the active run, `followUp` when the run would
 * otherwise end.
 */
export type ConversationMessageKind = "steer" | "followUp";

/** Kind of an inbox message: conversation messages, or an event for a durable machine. */
export type InboxMessageKind = ConversationMessageKind | "event";

/** Queued entry in the inbox of a branch. */
export interface InboxMessage {
  /** Set by the sender; unique in its branch until the run that receives the message has ended. */
  readonly id: string;
  readonly branch: string;
  readonly kind: InboxMessageKind;
  /** Encoded messages; for the kind `event`, the encoded event or answer. */
  readonly messages: string;
  /** Send time in milliseconds since the epoch. */
  readonly at: number;
  /** Unfinished run that received the message, and would return the message on rollback; absent while queued. */
  readonly deliveredTo?: string | undefined;
}

/** Inbox message to enqueue on a branch. */
export interface InboxMessageWrite extends Omit<InboxMessage, "branch" | "deliveredTo"> {
  readonly thread: string;
  /** Default: the thread's head branch. */
  readonly branch?: string | undefined;
}
