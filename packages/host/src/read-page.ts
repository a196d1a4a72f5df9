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

/** Reads one page of an open file of `size` bytes. A zero byte in the first chunk marks a binary file. */
export async function readPage(handle: Handle, size: number, options: PageOptions): Promise<PageResult> {
  const { from = 1, lines: maxLines = 500, maxBytes = 48 * 1024, maxLineBytes = 2000, signal, onScanned } = options;
  const lines: PageLine[] = [];
  let total = 0;
  let atLine = 1;
  let usedBytes = 0;
  let isExact = true;
  let lineChunks: Buffer[] = [];
  let bufferedBytes = 0;
  let lineBytes = 0;
  let next: number | undefined;

  const appendToLine = (part: Buffer): void => {
    lineBytes += part.length;
    // One byte beyond the limit, to detect a carriage return at the end of the line.
    const room = maxLineBytes + 1 - bufferedBytes;
    if (atLine < from || room <= 0) return;
    lineChunks.push(Buffer.from(part.subarray(0, room)));
    bufferedBytes += Math.min(room, part.length);
  };
  /** Appends a finished line to the page; false if the page is full. */
  const finishLine = (): boolean => {
    if (atLine >= from) {
      const line = decodeLine(lineChunks, lineBytes, maxLineBytes);
      if (lines.length === maxLines || (lines.length > 0 && usedBytes + line.shownBytes > maxBytes)) {
        next = atLine;
        return false;
      }
      usedBytes += line.shownBytes;
      isExact &&= line.isExact;
      lines.push({ text: line.text, cutBytes: line.cutBytes });
      lineChunks = [];
      bufferedBytes = 0;
    }
    lineBytes = 0;
    atLine++;
    return true;
  };

  // One byte more than expected, to detect the end of the file with the same read; /proc reports size 0 for non-empty
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
    let start = 0;
    if (atLine < from) {
      const skipped = skipLines(bytes, from - atLine);
      atLine += skipped.lines;
      start = skipped.at;
      if (start > 0) lineBytes = 0;
    }
    if (atLine === from && lineBytes === 0 && lines.length === 0) {
      const decoded = decodeLines(bytes.subarray(start), { maxLines, maxBytes, maxLineBytes, isLast });
      if (decoded !== undefined) {
        lines.push(...decoded.lines);
        atLine += lines.length;
        if (decoded.hasMore) next = atLine;
        return createPage();
      }
    }
    for (let end = bytes.indexOf(lineEnd, start); end !== -1; end = bytes.indexOf(lineEnd, start)) {
      appendToLine(bytes.subarray(start, end));
      start = end + 1;
      if (!finishLine()) return createPage();
    }
    appendToLine(bytes.subarray(start));
    onScanned?.(total);
    if (isLast) break;
    const wantedBytes = atLine < from && size > skipChunkBytes ? skipChunkBytes : chunkBytes;
    if (chunk.length !== wantedBytes) chunk = Buffer.allocUnsafe(wantedBytes);
  }
  if (lineBytes > 0) finishLine();
  return createPage();

  function createPage(): PageResult {
    const totalLines = next === undefined ? atLine - 1 : undefined;
    return { kind: "text", lines, next, totalLines, isExact, totalBytes: Math.max(size, total) };
  }
}

/**
 * Skips lines; returns their count and the index after the last one. A byte loop is faster than one `indexOf` per
 * line.
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
