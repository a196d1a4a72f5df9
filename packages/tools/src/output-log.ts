/** What a command writes, both outputs in the order of their coming, in bounded memory: its beginning and its end. */
import { type OutputStream, wholeCharacters } from "@statewright/host";

const blockBytes = 64 * 1024;

interface Block {
  readonly bytes: Buffer;
  used: number;
}

/** Takes the bytes of both outputs. Above `maxBytes` what lies between beginning and end is let go. */
export class OutputLog {
  readonly #mostBlocks: number;
  readonly #head: Block[] = [];
  readonly #tail: Block[] = [];
  /** The beginning of a character whose end has not come. */
  readonly #unfinished: { [stream in OutputStream]: Buffer } = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
  #total = 0;
  #dropped = 0;
  #isBinary = false;

  constructor(maxBytes: number) {
    this.#mostBlocks = Math.max(1, Math.ceil(maxBytes / 2 / blockBytes));
  }

  /** How many bytes came. */
  get totalBytes(): number {
    return this.#total;
  }

  /** Whether a zero byte was among them. */
  get isBinary(): boolean {
    return this.#isBinary;
  }

  /** Keep a chunk. Characters that come in two chunks stay whole, whatever the other output writes between them. */
  add(chunk: Uint8Array, stream: OutputStream): void {
    this.#total += chunk.length;
    this.#isBinary ||= chunk.includes(0);
    const waiting = this.#unfinished[stream];
    const bytes = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk]);
    const end = wholeCharacters(bytes);
    this.#unfinished[stream] = Buffer.from(bytes.subarray(end));
    this.#keep(bytes.subarray(0, end));
  }

  /** Nothing more will come. */
  end(): void {
    for (const stream of ["stdout", "stderr"] as const) {
      this.#keep(this.#unfinished[stream]);
      this.#unfinished[stream] = Buffer.alloc(0);
    }
  }

  /** All that was kept; a line stands where bytes are missing. */
  body(): Buffer {
    const gap = this.#dropped === 0 ? [] : [Buffer.from(`\n[… ${this.#dropped} bytes are not kept …]\n`)];
    return Buffer.concat([...this.#head.map(filled), ...gap, ...this.#tail.map(filled)]);
  }

  /** The end of the text, at most so many bytes, from the beginning of a line where there is one. */
  tail(maxBytes: number): string {
    const parts: Buffer[] = [];
    let bytes = 0;
    const blocks = this.#dropped === 0 ? [...this.#head, ...this.#tail] : this.#tail;
    for (const block of blocks.toReversed()) {
      if (bytes > maxBytes) break;
      parts.unshift(filled(block));
      bytes += block.used;
    }
    const end = Buffer.concat(parts);
    if (end.length <= maxBytes && this.#dropped === 0) return end.toString("utf8");
    const start = Math.max(0, end.length - maxBytes);
    const line = end.indexOf(10, start);
    // A line that fills the whole tail is shown from where the tail begins.
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

  /** The block that the next byte goes to. */
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

function filled({ bytes, used }: Block): Buffer {
  return bytes.subarray(0, used);
}
