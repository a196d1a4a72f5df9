/** Reads a file by pages of lines; the memory use is bounded by the page, not by the file. */
import { getCompleteUtf8Length } from "./capture.ts";
import { HostError } from "./host-error.ts";
import type { Handle } from "./open-inside.ts";

/** Range and limits of a page. */
export interface PageOptions {
  /** First line, counted from 1. Default: 1. */
  readonly from?: number;
  /** Maximum number of lines. Default: 500. */
  readonly lines?: number;
  /** Maximum number of bytes of all lines. Default: 48 KiB. */
  readonly maxBytes?: number;
  /** Maximum number of bytes per line. Default: 2,000. */
  readonly maxLineBytes?: number;
  /** Aborts the search for the first line with `cancelled`. */
  readonly signal?: AbortSignal;
  /** Progress callback with the number of scanned bytes. */
  readonly onScanned?: (bytes: number) => void;
}

/** Line without its line end. */
export interface PageLine {
  readonly text: string;
  /** Number of omitted bytes of the line; 0 for a complete line. */
  readonly cutBytes: number;
}

/** Lines of a text file, or the first bytes of a binary file. */
export type PageResult =
  | {
      readonly kind: "text";
      readonly lines: readonly PageLine[];
      /** First line of the next page; undefined for the last page. */
      readonly next: number | undefined;
      /** Total number of lines; known only for the last page. */
      readonly totalLines: number | undefined;
      /** True when the text is lossless; false when invalid UTF-8 was replaced by U+FFFD. */
      readonly isExact: boolean;
      readonly totalBytes: number;
    }
  | { readonly kind: "binary"; readonly head: Uint8Array; readonly totalBytes: number };

const chunkBytes = 64 * 1024;
/** Larger chunk size for skipping to a distant line: each read is a round trip through the thread pool. */
const skipChunkBytes = 2 ** 20;
const lineEnd = 10;

/** Reads a page of an open file of `size` bytes. A zero byte in the first chunk marks a binary file. */
export async function readPage(handle: Handle, size: number, options: PageOptions): Promise<PageResult> {
  const { signal, onScanned } = options;
  const page = new PageBuilder(options);
  let total = 0;
  // A byte more than expected, to detect the end of the file with the same read; /proc reports size 0 for non-empty
  // files.
  let chunk = Buffer.allocUnsafe(size > 0 ? Math.min(chunkBytes, size + 1) : chunkBytes);
  for (;;) {
    if (signal?.aborted) throw new HostError("cancelled", "Reading the file was cancelled.");
    const bytesRead = await handle.read(chunk, total);
    const bytes = chunk.subarray(0, bytesRead);
    if (total === 0 && bytes.includes(0))
      return { kind: "binary", head: Buffer.from(bytes.subarray(0, 4096)), totalBytes: Math.max(size, bytesRead) };
    if (bytesRead === 0) break;
    total += bytesRead;
    const isLast = size > 0 && total >= size && bytesRead < chunk.length;
    if (page.append(bytes, { isLast })) return page.build(Math.max(size, total));
    onScanned?.(total);
    if (isLast) break;
    const wantedBytes = page.isSkipping() && size > skipChunkBytes ? skipChunkBytes : chunkBytes;
    if (chunk.length !== wantedBytes) chunk = Buffer.allocUnsafe(wantedBytes);
  }
  page.end();
  return page.build(Math.max(size, total));
}

/** Collects the lines of a page from consecutive chunks of a file. */
class PageBuilder {
  readonly #from: number;
  readonly #limits: { readonly maxLines: number; readonly maxBytes: number; readonly maxLineBytes: number };
  readonly #lines: PageLine[] = [];
  #atLine = 1;
  #usedBytes = 0;
  #isExact = true;
  #lineChunks: Buffer[] = [];
  #bufferedBytes = 0;
  #lineBytes = 0;
  #next: number | undefined;

  constructor({ from = 1, lines: maxLines = 500, maxBytes = 48 * 1024, maxLineBytes = 2000 }: PageOptions) {
    this.#from = from;
    this.#limits = { maxLines, maxBytes, maxLineBytes };
  }

  /** Returns true before the first line of the page. */
  isSkipping(): boolean {
    return this.#atLine < this.#from;
  }

  /** Appends a chunk; returns true when the page is complete. */
  append(bytes: Buffer, { isLast }: { readonly isLast: boolean }): boolean {
    let start = this.#skip(bytes);
    if (this.#appendAtOnce(bytes.subarray(start), { isLast })) return true;
    for (let end = bytes.indexOf(lineEnd, start); end !== -1; end = bytes.indexOf(lineEnd, start)) {
      this.#appendToLine(bytes.subarray(start, end));
      start = end + 1;
      if (!this.#finishLine()) return true;
    }
    this.#appendToLine(bytes.subarray(start));
    return false;
  }

  /** Finishes a last line without a line end. */
  end(): void {
    if (this.#lineBytes > 0) this.#finishLine();
  }

  build(totalBytes: number): PageResult {
    const next = this.#next;
    const totalLines = next === undefined ? this.#atLine - 1 : undefined;
    return { kind: "text", lines: this.#lines, next, totalLines, isExact: this.#isExact, totalBytes };
  }

  /** Skips the lines before the page; returns the index of the first remaining byte. */
  #skip(bytes: Buffer): number {
    if (!this.isSkipping()) return 0;
    const skipped = skipLines(bytes, this.#from - this.#atLine);
    this.#atLine += skipped.lines;
    if (skipped.at > 0) this.#lineBytes = 0;
    return skipped.at;
  }

  /** Appends the whole page if the page lies completely in these bytes; the fast path of small files. */
  #appendAtOnce(bytes: Buffer, position: { readonly isLast: boolean }): boolean {
    const isAtStart = this.#atLine === this.#from && this.#lineBytes === 0 && this.#lines.length === 0;
    const decoded = isAtStart ? decodeLines(bytes, { ...this.#limits, ...position }) : undefined;
    if (decoded === undefined) return false;
    this.#lines.push(...decoded.lines);
    this.#atLine += this.#lines.length;
    if (decoded.hasMore) this.#next = this.#atLine;
    return true;
  }

  #appendToLine(part: Buffer): void {
    this.#lineBytes += part.length;
    // A byte beyond the limit, to detect a carriage return at the end of the line.
    const room = this.#limits.maxLineBytes + 1 - this.#bufferedBytes;
    if (this.isSkipping() || room <= 0) return;
    this.#lineChunks.push(Buffer.from(part.subarray(0, room)));
    this.#bufferedBytes += Math.min(room, part.length);
  }

  /** Appends a finished line to the page; false if the page is full. */
  #finishLine(): boolean {
    if (!this.isSkipping()) {
      const { maxLines, maxBytes, maxLineBytes } = this.#limits;
      const line = decodeLine(this.#lineChunks, this.#lineBytes, maxLineBytes);
      const isFull = this.#lines.length > 0 && this.#usedBytes + line.shownBytes > maxBytes;
      if (this.#lines.length === maxLines || isFull) {
        this.#next = this.#atLine;
        return false;
      }
      this.#usedBytes += line.shownBytes;
      this.#isExact &&= line.isExact;
      this.#lines.push({ text: line.text, cutBytes: line.cutBytes });
      this.#lineChunks = [];
      this.#bufferedBytes = 0;
    }
    this.#lineBytes = 0;
    this.#atLine++;
    return true;
  }
}

/**
 * Skips lines; returns the count and the index after the last skipped line. A byte loop is faster than an `indexOf`
 * per line.
 */
function skipLines(bytes: Uint8Array, maxLines: number): { readonly lines: number; readonly at: number } {
  let lines = 0;
  let at = 0;
  for (let index = 0; index < bytes.length && lines < maxLines; index++) {
    if (bytes[index] !== lineEnd) continue;
    lines++;
    at = index + 1;
  }
  return { lines, at };
}

/**
 * Decodes a page that lies completely in these bytes at once; undefined if incomplete, or with an overlong or invalid
 * line.
 */
function decodeLines(
  bytes: Uint8Array,
  limits: {
    readonly maxLines: number;
    readonly maxBytes: number;
    readonly maxLineBytes: number;
    readonly isLast: boolean;
  },
): { readonly lines: readonly PageLine[]; readonly hasMore: boolean } | undefined {
  let end = 0;
  let count = 0;
  for (; count < limits.maxLines && end < bytes.length; count++) {
    const found = bytes.indexOf(lineEnd, end);
    if (found === -1 && !limits.isLast) return undefined;
    const next = found === -1 ? bytes.length : found + 1;
    if (next - end > limits.maxLineBytes) return undefined;
    if (next > limits.maxBytes && count > 0) break;
    end = next;
  }
  if (end === bytes.length && !limits.isLast) return undefined;
  try {
    const texts = strictDecoder.decode(bytes.subarray(0, end)).split("\n");
    if (texts.length > count) texts.pop();
    const lines = texts.map((text) => ({ text: text.endsWith("\r") ? text.slice(0, -1) : text, cutBytes: 0 }));
    return { lines, hasMore: end < bytes.length };
  } catch {
    return undefined;
  }
}

interface DecodedLine extends PageLine {
  readonly shownBytes: number;
  readonly isExact: boolean;
}

const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decodeLine(chunks: readonly Buffer[], lineBytes: number, maxLineBytes: number): DecodedLine {
  const [first] = chunks;
  const all = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
  let bytes = all;
  if (lineBytes === all.length && all.at(-1) === 13) bytes = all.subarray(0, -1);
  const cutBytes = Math.max(0, lineBytes - maxLineBytes - (lineBytes === all.length ? all.length - bytes.length : 0));
  if (cutBytes > 0) {
    const truncated = bytes.subarray(0, maxLineBytes);
    bytes = truncated.subarray(0, getCompleteUtf8Length(truncated));
  }
  try {
    return { text: strictDecoder.decode(bytes), cutBytes, shownBytes: bytes.length + 1, isExact: true };
  } catch {
    return { text: bytes.toString("utf8"), cutBytes, shownBytes: bytes.length + 1, isExact: false };
  }
}
