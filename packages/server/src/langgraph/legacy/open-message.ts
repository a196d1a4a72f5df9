/** Streamed messages, with the lengths of text and arguments that a client has received. */

/** Streamed message, as far as wire events have told it. */
export interface OpenMessage {
  /** Hash of the message id and of the inner graph. */
  readonly key: string;
  /** 1 for the first text of the message; more after each retraction, as in the id `<id>~2`. */
  attempt: number;
  text: string;
  /** Length and hash of the sent text; equal to those of `text`, except for a message restored from an event id. */
  sent: SentText;
  reasoningLength: number;
  /** Length of the sent arguments by call, in the order of the calls. */
  calls: Map<string, number>;
  /** Lengths of calls of a restored message, whose ids come with the next snapshot. */
  restoredCalls: readonly number[];
  /** True for a message that is complete and waits for its commit. */
  isComplete: boolean;
  /** True until the text of a restored message is known. */
  isRestored: boolean;
}

/** Length and hash of a text. */
export interface SentText {
  readonly length: number;
  readonly hash: number;
}

/** Creates a message without sent text. */
export function createOpenMessage(key: string, attempt: number): OpenMessage {
  const sent = { length: 0, hash: hashText("") };
  const calls = { calls: new Map<string, number>(), restoredCalls: [] };
  return { key, attempt, text: "", sent, reasoningLength: 0, ...calls, isComplete: false, isRestored: false };
}

/** Returns the key of a message: short, because event ids hold it. */
export function toMessageKey(messageId: string, withinId: string | undefined): string {
  return hashText(`${withinId ?? ""} ${messageId}`).toString(36);
}

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;

/** Returns the 32-bit FNV-1a hash of a text; with `seed` of a text that continues another. */
export function hashText(text: string, seed: number = offsetBasis): number {
  let hash = seed;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), prime) >>> 0;
  return hash;
}

/** Formats the sent lengths of a message as a part of an event id. A complete message ends with `~`. */
export function toPosition(message: OpenMessage): string {
  const { key, attempt, sent, reasoningLength, calls, restoredCalls, isComplete } = message;
  const lengths = calls.size > 0 ? [...calls.values()] : restoredCalls;
  const counts = [attempt, sent.length, sent.hash, reasoningLength].map((count) => count.toString(36));
  const sentCalls = lengths.map((length) => length.toString(36)).join("_");
  return [key, ...counts, sentCalls].join("-") + (isComplete ? "~" : "");
}

const position =
  /^([0-9a-z]{1,7})-([0-9a-z]{1,6})-([0-9a-z]{1,8})-([0-9a-z]{1,7})-([0-9a-z]{1,8})-([0-9a-z_]{0,200})(~?)$/;

/** Parses a part of an event id; undefined for another text. */
export function restoreMessage(text: string): OpenMessage | undefined {
  const parts = position.exec(text);
  if (parts === null) return undefined;
  const [attempt = 1, length = 0, hash = 0, reasoningLength = 0] = parts.slice(2, 6).map(parseCount);
  const restoredCalls = (parts[6] ?? "").split("_").filter(Boolean).map(parseCount);
  const message = createOpenMessage(parts[1] ?? "", attempt);
  const sent = { sent: { length, hash }, reasoningLength, restoredCalls };
  return { ...message, ...sent, isComplete: parts[7] === "~", isRestored: true };
}

function parseCount(text: string): number {
  return Number.parseInt(text, 36);
}
