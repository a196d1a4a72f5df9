/** Messages between the relays of two processes: a length of four bytes, then encoded values. */
import type { RelayFrame, RelaySnapshot } from "@statewright/core";
import type { Codec } from "@statewright/core/store";

/** Version of the messages. A process of another version is not connected. */
export const protocolVersion: number = 1;

/** Largest message in bytes from a publisher. A larger event is reported as dropped. */
export const maxMessageBytes: number = 16 * 1024 * 1024;

/** Largest message in bytes from a reader, which sends names only. */
export const maxRequestBytes: number = 64 * 1024;

/** Message of a reader to a publisher. */
export type ReaderMessage =
  | { readonly subscribe: string }
  | { readonly unsubscribe: string }
  | { readonly snapshot: string; readonly request: number };

/** Message of a publisher to a reader. */
export type PublisherMessage =
  | { readonly version: number }
  | { readonly thread: string; readonly frame: RelayFrame }
  | { readonly missing: string }
  | { readonly answer: number; readonly snapshot: RelaySnapshot | null };

/** Encodes a message; undefined for a message that cannot be encoded or is too large. */
export function encodeMessage(codec: Codec, message: PublisherMessage | ReaderMessage): Buffer | undefined {
  let text: string;
  try {
    text = codec.encode(message, "a message of the relay");
  } catch {
    // An event may hold a value that only its own process can read.
    return undefined;
  }
  const length = Buffer.byteLength(text);
  if (length > maxMessageBytes) return undefined;
  const bytes = Buffer.allocUnsafe(4 + length);
  bytes.writeUInt32BE(length, 0);
  bytes.write(text, 4);
  return bytes;
}

/** Encodes a frame; an event that cannot be sent is replaced by `events.dropped`, so that no frame is missing. */
export function encodeFrame(codec: Codec, thread: string, frame: RelayFrame): Buffer | undefined {
  const bytes = encodeMessage(codec, { thread, frame });
  if (bytes !== undefined || frame.event === undefined) return bytes;
  const { seq, at, branch } = frame.event;
  return encodeMessage(codec, {
    thread,
    frame: { ...frame, event: { type: "events.dropped", count: 1, seq, at, branch } },
  });
}

/** Splits received bytes into messages. */
export interface MessageReader {
  /** Returns the complete messages. Throws for a message above the limit, or one that cannot be decoded. */
  read(bytes: Buffer): readonly unknown[];
}

export function createMessageReader(codec: Codec, maxBytes: number): MessageReader {
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  return {
    read: (bytes) => {
      waiting.push(bytes);
      waitingBytes += bytes.length;
      const messages: unknown[] = [];
      while (waitingBytes >= 4) {
        // Parts are joined only when a message is complete: the cost stays linear.
        const head = waiting[0] ?? Buffer.alloc(0);
        const length = (head.length >= 4 ? head : Buffer.concat(waiting)).readUInt32BE(0);
        if (length > maxBytes) throw new RangeError(`a message of ${length} bytes is above the limit of ${maxBytes}`);
        if (waitingBytes < 4 + length) break;
        const all = waiting.length === 1 ? head : Buffer.concat(waiting);
        messages.push(codec.decode(all.toString("utf8", 4, 4 + length)));
        const rest = all.subarray(4 + length);
        waiting = rest.length === 0 ? [] : [rest];
        waitingBytes = rest.length;
      }
      return messages;
    },
  };
}

/** Returns a message of a reader, or undefined for any other value. */
export function parseReaderMessage(value: unknown): ReaderMessage | undefined {
  if (!isRecord(value)) return undefined;
  const { subscribe, unsubscribe, snapshot, request } = value;
  if (typeof subscribe === "string") return { subscribe };
  if (typeof unsubscribe === "string") return { unsubscribe };
  return typeof snapshot === "string" && isCount(request) ? { snapshot, request } : undefined;
}

/** Returns a message of a publisher, or undefined for any other value. */
export function parsePublisherMessage(value: unknown): PublisherMessage | undefined {
  if (!isRecord(value)) return undefined;
  const { version, thread, frame, missing, answer, snapshot } = value;
  if (isCount(version)) return { version };
  if (typeof missing === "string") return { missing };
  if (typeof thread === "string" && isFrame(frame)) return { thread, frame };
  if (isCount(answer) && snapshot === null) return { answer, snapshot };
  return isCount(answer) && isSnapshot(snapshot) ? { answer, snapshot } : undefined;
}

function isFrame(value: unknown): value is RelayFrame {
  return isPosition(value) && (!("event" in value) || isEvent(value["event"]));
}

function isSnapshot(value: unknown): value is RelaySnapshot {
  if (!isPosition(value) || !("open" in value) || !isRecord(value["open"])) return false;
  const { messages, tools } = value["open"];
  return isOpenList(messages, "calls") && isOpenList(tools, "progress");
}

function isOpenList(value: unknown, listKey: string): boolean {
  return (
    Array.isArray(value) &&
    value.every((each) => isRecord(each) && typeof each["branch"] === "string" && Array.isArray(each[listKey]))
  );
}

function isPosition(value: unknown): value is Record<string, unknown> {
  if (!isRecord(value)) return false;
  const { source, run, branch, epoch, index, seq } = value;
  return [source, run, branch].every((each) => typeof each === "string") && [epoch, index, seq].every(isCount);
}

function isEvent(value: unknown): boolean {
  return (
    isRecord(value) && typeof value["type"] === "string" && typeof value["branch"] === "string" && isCount(value["seq"])
  );
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
