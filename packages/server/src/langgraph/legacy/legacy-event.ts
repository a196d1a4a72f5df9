/** Events of the legacy stream, and their ids. */
import type { StreamMode } from "../stream-modes.ts";
import { type OpenMessage, restoreMessage } from "./open-message.ts";

/** Wire event of the legacy stream, before the modes of a reader select it. */
export interface LegacyEvent {
  /** Name without the namespace, such as `values`. */
  readonly event: string;
  /** Mode that selects the event; undefined for an event that every reader receives. */
  readonly mode: StreamMode | undefined;
  /** Namespace of an inner graph, such as `|research:0:1`; empty for the outermost graph. */
  readonly namespace: string;
  readonly data: unknown;
  /** Sent lengths of the open messages after this event; absent for an event without text. */
  readonly positions?: readonly string[];
  /**
   * True for text that a commit completes: it belongs behind the durable event before the commit, because how much is
   * left to send depends on the reader.
   */
  readonly isBeforeCommit?: true;
  /** True for the last event of a run, in the current attempt. */
  readonly isEnd?: true;
}

/** Place in the stream of a thread: `n` counts the wire events after the durable event `seq`. */
export interface StreamPlace {
  readonly seq: number;
  readonly n: number;
  /** Sent lengths of the messages that are open at this place. */
  readonly messages: readonly OpenMessage[];
}

/** Most open messages that an id describes. */
const maxPositions = 24;

/**
 * Formats the id of a wire event: `<seq>.<n>`, and for each open message a part that says how much of it was sent. So
 * a client that reconnects to any process receives the rest of each message, and no word twice.
 */
export function formatEventId(seq: number, n: number, positions: readonly string[]): string {
  return [`${seq}.${n}`, ...positions.slice(-maxPositions)].join(".");
}

/** Parses the id of a wire event; undefined for an id that this server has not made. */
export function parseEventId(id: string): StreamPlace | undefined {
  const [seq = "", n = "", ...positions] = id.split(".");
  if (!isCount(seq) || !isCount(n) || positions.length > maxPositions) return undefined;
  const messages = positions.map(restoreMessage);
  if (messages.includes(undefined)) return undefined;
  return { seq: Number(seq), n: Number(n), messages: messages.filter((message) => message !== undefined) };
}

function isCount(text: string): boolean {
  return /^\d{1,15}$/.test(text);
}
