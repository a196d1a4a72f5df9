/** Bounded capture of an output stream: head, tail, and a count of the dropped bytes between head and tail. */
import { StringDecoder } from "node:string_decoder";

/** Captured output. `text` contains a line with the number of dropped bytes; `droppedBytes` is the same number. */
export interface CapturedOutput {
  readonly text: string;
  readonly droppedBytes: number;
}

/** Captures at most `maxBytes` bytes of a stream, and decodes UTF-8 across chunks. */
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

  /** Appends a chunk. Returns the characters completed by the chunk. */
  add(chunk: Buffer): string {
    const toHead = Math.min(chunk.length, this.#headBytes - this.#inHead);
    if (toHead > 0) this.#head.push(chunk.subarray(0, toHead));
    this.#inHead += toHead;
    if (toHead < chunk.length) this.#addToTail(chunk.subarray(toHead));
    return this.#decoder.write(chunk);
  }

  /** Returns the incomplete characters at the end of the stream as U+FFFD; empty for valid UTF-8. */
  end(): string {
    return this.#decoder.end();
  }

  /** Returns the captured output so far. A character split by the gap is dropped completely. */
  getOutput(): CapturedOutput {
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    const excess = Math.max(0, tail.length - this.#tailBytes);
    if (this.#dropped + excess === 0) return { text: Buffer.concat([head, tail]).toString("utf8"), droppedBytes: 0 };

    const headEnd = getCompleteUtf8Length(head);
    const tailStart = excess + countContinuationBytes(tail.subarray(excess));
    const droppedBytes = this.#dropped + (head.length - headEnd) + tailStart;
    const gap = `\n[... ${droppedBytes} bytes omitted ...]\n`;
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

/**
 * Returns the length in bytes of the prefix of complete UTF-8 characters, without an incomplete character at the end.
 */
export function getCompleteUtf8Length(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    return getSequenceLength(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** Counts continuation bytes at the start, which belong to a character of the dropped bytes; at most three. */
function countContinuationBytes(bytes: Uint8Array): number {
  let count = 0;
  while (count < 3 && isContinuation(bytes[count] ?? 0)) count++;
  return count;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** Returns the byte length of a UTF-8 sequence by its first byte; 1 for an invalid first byte. */
function getSequenceLength(firstByte: number): number {
  if (firstByte < 0xc2 || firstByte > 0xf4) return 1;
  if (firstByte >= 0xf0) return 4;
  return firstByte >= 0xe0 ? 3 : 2;
}
