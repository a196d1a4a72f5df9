/** A bounded copy of one output stream: its beginning and its end, with a count of the bytes between them. */
import { StringDecoder } from "node:string_decoder";

/** What a capture kept: `text` carries a line that says how much is missing, `droppedBytes` the number alone. */
export interface Captured {
  readonly text: string;
  readonly droppedBytes: number;
}

/** Takes the bytes of a stream as they come, keeps at most `maxBytes` of them, and decodes UTF-8 across chunks. */
export class Capture {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  readonly #decoder = new StringDecoder("utf8");
  readonly #head: Buffer[] = [];
  readonly #tail: Buffer[] = [];
  #inHead = 0;
  #inTail = 0;
  #dropped = 0;

  constructor(maxBytes: number) {
    this.#headBytes = Math.ceil(maxBytes / 2);
    this.#tailBytes = Math.floor(maxBytes / 2);
  }

  /** Keep a chunk; returns the characters that it completed. */
  add(chunk: Buffer): string {
    const toHead = Math.min(chunk.length, this.#headBytes - this.#inHead);
    if (toHead > 0) this.#head.push(chunk.subarray(0, toHead));
    this.#inHead += toHead;
    if (toHead < chunk.length) this.#addToTail(chunk.subarray(toHead));
    return this.#decoder.write(chunk);
  }

  /** The characters that the stream left unfinished, as U+FFFD; empty when it ended well. */
  end(): string {
    return this.#decoder.end();
  }

  /** What was kept so far. A character that the gap would cut is dropped whole. */
  captured(): Captured {
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    const excess = Math.max(0, tail.length - this.#tailBytes);
    if (this.#dropped + excess === 0) return { text: Buffer.concat([head, tail]).toString("utf8"), droppedBytes: 0 };

    const headEnd = wholeCharacters(head);
    const tailStart = excess + brokenCharacters(tail.subarray(excess));
    const droppedBytes = this.#dropped + (head.length - headEnd) + tailStart;
    const gap = `\n[... ${droppedBytes} bytes left out ...]\n`;
    const text = head.toString("utf8", 0, headEnd) + gap + tail.toString("utf8", tailStart);
    return { text, droppedBytes };
  }

  #addToTail(chunk: Buffer): void {
    this.#tail.push(chunk);
    this.#inTail += chunk.length;
    for (let first = this.#tail[0]; first !== undefined; first = this.#tail[0]) {
      if (this.#inTail - first.length < this.#tailBytes) break;
      this.#tail.shift();
      this.#inTail -= first.length;
      this.#dropped += first.length;
    }
  }
}

/** How many bytes at the start make whole characters: all but an unfinished one at the end. */
export function wholeCharacters(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return sequenceLength(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** How many bytes at the start belong to a character that began before them; at most three. */
function brokenCharacters(bytes: Uint8Array): number {
  let count = 0;
  while (count < 3 && isContinuation(bytes[count] ?? 0)) count++;
  return count;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** How many bytes a character has by its first; a byte that cannot be a first one stands alone. */
function sequenceLength(lead: number): number {
  if (lead < 0xc2 || lead > 0xf4) return 1;
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}
