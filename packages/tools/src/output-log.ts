/**
 * Bounded log of the output of a command: stdout and stderr in order of arrival, limited to the beginning and the
 * end.
 */
import { getCompleteUtf8Length, type OutputStream } from "@statewright/host";

const blockBytes = 64 * 1024;

interface Block {
  readonly bytes: Buffer;
  used: number;
}

/** Log of both output streams. Above `maxBytes` the log drops the middle part. */
export class OutputLog {
  readonly #mostBlocks: number;
  readonly #head: Block[] = [];
  readonly #tail: Block[] = [];
  /** Incomplete character at the end of the last chunk, per stream. */
  readonly #unfinished: { [stream in OutputStream]: Buffer } = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  #total = 0;
  #dropped = 0;
  #isBinary = false;

  constructor(maxBytes: number) {
    this.#mostBlocks = Math.max(1, Math.ceil(maxBytes / 2 / blockBytes));
  }

  /** Total bytes received. */
  get totalBytes(): number {
    return this.#total;
  }

  /** True when the output contains a zero byte. */
  get isBinary(): boolean {
    return this.#isBinary;
  }

  /** Appends a chunk. Characters split across chunks stay complete, even when the other stream writes in between. */
  add(chunk: Uint8Array, stream: OutputStream): void {
    this.#total += chunk.length;
    this.#isBinary ||= chunk.includes(0);
    const pending = this.#unfinished[stream];
    const bytes = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    const finish = getCompleteUtf8Length(bytes);
    this.#unfinished[stream] = Buffer.from(bytes.subarray(finish));
    this.#keep(bytes.subarray(0, finish));
  }

  /** Flushes incomplete characters at the end of the output. */
  end(): void {
    for (const stream of ["stdout", "stderr"] as const) {
      this.#keep(this.#unfinished[stream]);
      this.#unfinished[stream] = Buffer.alloc(0);
    }
  }

  /** Returns the stored bytes, with a line in place of dropped bytes. */
  toBuffer(): Buffer {
    const gap = this.#dropped === 0 ? [] : [Buffer.from(`\n[… ${this.#dropped} bytes were dropped …]\n`)];
    return Buffer.concat([...this.#head.map(getFilledBytes), ...gap, ...this.#tail.map(getFilledBytes)]);
  }

  /** Returns the last text of at most `maxBytes` bytes, starting at a line start if possible. */
  readTail(maxBytes: number): string {
    const parts: Buffer[] = [];
    let bytes = 0;
    const blocks = this.#dropped === 0 ? [...this.#head, ...this.#tail] : this.#tail;
    for (const block of blocks.toReversed()) {
      if (bytes > maxBytes) break;
      parts.unshift(getFilledBytes(block));
      bytes += block.used;
    }
    const end = Buffer.concat(parts);
    if (end.length <= maxBytes && this.#dropped === 0) return end.toString("utf8");
    const start = Math.max(0, end.length - maxBytes);
    const line = end.indexOf(10, start);
    // A single line longer than the tail is shown from the start of the tail.
    if (line !== -1 && line < end.length - 1) return end.toString("utf8", line + 1);
    return end.toString("utf8", start).replace(/^\uFFFD+/, "");
  }

  #keep(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      const block = this.#roomy();
      const part = bytes.subarray(at, at + blockBytes - block.used);
      block.bytes.set(part, block.used);
      block.used += part.length;
      at += part.length;
    }
  }

  /** Returns the block with room for the next byte. */
  #roomy(): Block {
    const last = this.#tail.at(-1) ?? this.#head.at(-1);
    if (last !== undefined && last.used < blockBytes) return last;
    const block = { bytes: Buffer.allocUnsafe(blockBytes), used: 0 };
    if (this.#tail.length === 0 && this.#head.length < this.#mostBlocks) this.#head.push(block);
    else this.#tail.push(block);
    if (this.#tail.length > this.#mostBlocks) this.#dropped += this.#tail.shift()?.used ?? 0;
    return block;
  }
}

function getFilledBytes({ bytes, used }: Block): Buffer {
  return bytes.subarray(0, used);
}
