/** Reading a part of a file by lines, however large the file is: no more of it is in memory than one page. */
import { wholeCharacters } from "./capture.ts";
import { HostError } from "./host-error.ts";
import type { Handle } from "./open-inside.ts";

/** Which lines to read. */
export interface PageOptions {
  /** The first line, counted from 1; 1 by default. */
  readonly from?: number;
  /** How many lines at most; 500 by default. */
  readonly lines?: number;
  /** How many bytes of lines at most; 48 KiB by default. */
  readonly maxBytes?: number;
  /** How much of one line is given; 2,000 bytes by default. */
  readonly maxLineBytes?: number;
  /** Ends the search for the first line with `cancelled`. */
  readonly signal?: AbortSignal;
  /** Called with the number of bytes that were looked through, now and then. */
  readonly onScanned?: (bytes: number) => void;
}

/** A line without its end. */
export interface PageLine {
  readonly text: string;
  /** Bytes of the line that are left out; 0 when it is whole. */
  readonly cutBytes: number;
}

/** Lines of a text, or the beginning of a file that is none. */
export type PageResult =
  | {
      readonly kind: "text";
      readonly lines: readonly PageLine[];
      /** The line at which the next page begins; undefined when this one is the last. */
      readonly next: number | undefined;
      /** How many lines there are; known when this page is the last. */
      readonly totalLines: number | undefined;
      /** Whether every byte is there: what is no UTF-8 is shown as U+FFFD. */
      readonly isExact: boolean;
      readonly totalBytes: number;
    }
  | { readonly kind: "binary"; readonly head: Uint8Array; readonly totalBytes: number };

const chunkBytes = 64 * 1024;
/** The way to a far line is read in larger parts: each takes a way through the thread pool. */
const farChunkBytes = 2 ** 20;
const lineEnd = 10;

/** Read one page of an open file of `size` bytes. A zero byte at its beginning says that it is no text. */
export async function readPage(handle: Handle, size: number, options: PageOptions): Promise<PageResult> {
  const { from = 1, lines: most = 500, maxBytes = 48 * 1024, maxLineBytes = 2000, signal, onScanned } = options;
  const lines: PageLine[] = [];
  let total = 0;
  let atLine = 1;
  let used = 0;
  let isExact = true;
  let kept: Buffer[] = [];
  let keptBytes = 0;
  let lineBytes = 0;
  let next: number | undefined;

  const keep = (part: Buffer): void => {
    lineBytes += part.length;
    // One byte more than is shown tells whether a carriage return is the end of the line.
    const room = maxLineBytes + 1 - keptBytes;
    if (atLine < from || room <= 0) return;
    kept.push(Buffer.from(part.subarray(0, room)));
    keptBytes += Math.min(room, part.length);
  };
  /** Take in a line that has ended; false when there is no room for it. */
  const endLine = (): boolean => {
    if (atLine >= from) {
      const line = lineOf(kept, lineBytes, maxLineBytes);
      if (lines.length === most || (lines.length > 0 && used + line.shown > maxBytes)) {
        next = atLine;
        return false;
      }
      used += line.shown;
      isExact &&= line.isExact;
      lines.push({ text: line.text, cutBytes: line.cutBytes });
      kept = [];
      keptBytes = 0;
    }
    lineBytes = 0;
    atLine++;
    return true;
  };

  // One byte more than there should be, so that the end is seen at once; /proc says 0 of files that are not empty.
  let chunk = Buffer.allocUnsafe(size > 0 ? Math.min(chunkBytes, size + 1) : chunkBytes);
  for (;;) {
    if (signal?.aborted) throw new HostError("cancelled", "Reading was cancelled.");
    const bytesRead = await handle.read(chunk, total);
    const bytes = chunk.subarray(0, bytesRead);
    if (total === 0 && bytes.includes(0))
      return { kind: "binary", head: Buffer.from(bytes.subarray(0, 4096)), totalBytes: Math.max(size, bytesRead) };
    if (bytesRead === 0) break;
    total += bytesRead;
    const isLast = size > 0 && total >= size && bytesRead < chunk.length;
    let start = 0;
    if (atLine < from) {
      const far = skipLines(bytes, from - atLine);
      atLine += far.lines;
      start = far.at;
      if (start > 0) lineBytes = 0;
    }
    if (atLine === from && lineBytes === 0 && lines.length === 0) {
      const whole = linesIn(bytes.subarray(start), { most, maxBytes, maxLineBytes, isLast });
      if (whole !== undefined) {
        lines.push(...whole.lines);
        atLine += lines.length;
        if (whole.hasMore) next = atLine;
        return pageOf();
      }
    }
    for (let end = bytes.indexOf(lineEnd, start); end !== -1; end = bytes.indexOf(lineEnd, start)) {
      keep(bytes.subarray(start, end));
      start = end + 1;
      if (!endLine()) return pageOf();
    }
    keep(bytes.subarray(start));
    onScanned?.(total);
    if (isLast) break;
    const wanted = atLine < from && size > farChunkBytes ? farChunkBytes : chunkBytes;
    if (chunk.length !== wanted) chunk = Buffer.allocUnsafe(wanted);
  }
  if (lineBytes > 0) endLine();
  return pageOf();

  function pageOf(): PageResult {
    const totalLines = next === undefined ? atLine - 1 : undefined;
    return { kind: "text", lines, next, totalLines, isExact, totalBytes: Math.max(size, total) };
  }
}

/** Go over lines; gives how many, and where the last of them ends. Byte by byte, which is faster than a search for each. */
function skipLines(bytes: Uint8Array, most: number): { readonly lines: number; readonly at: number } {
  let lines = 0;
  let at = 0;
  for (let index = 0; index < bytes.length && lines < most; index++) {
    if (bytes[index] !== lineEnd) continue;
    lines++;
    at = index + 1;
  }
  return { lines, at };
}

/** The lines of a page that lies in these bytes as a whole, decoded in one go; undefined where it does not, or is not plain. */
function linesIn(
  bytes: Uint8Array,
  how: { readonly most: number; readonly maxBytes: number; readonly maxLineBytes: number; readonly isLast: boolean },
): { readonly lines: readonly PageLine[]; readonly hasMore: boolean } | undefined {
  let end = 0;
  let count = 0;
  for (; count < how.most && end < bytes.length; count++) {
    const found = bytes.indexOf(lineEnd, end);
    if (found === -1 && !how.isLast) return undefined;
    const next = found === -1 ? bytes.length : found + 1;
    if (next - end > how.maxLineBytes) return undefined;
    if (next > how.maxBytes && count > 0) break;
    end = next;
  }
  if (end === bytes.length && !how.isLast) return undefined;
  try {
    const texts = strict.decode(bytes.subarray(0, end)).split("\n");
    if (texts.length > count) texts.pop();
    const lines = texts.map((text) => ({ text: text.endsWith("\r") ? text.slice(0, -1) : text, cutBytes: 0 }));
    return { lines, hasMore: end < bytes.length };
  } catch {
    return undefined;
  }
}

interface Line extends PageLine {
  readonly shown: number;
  readonly isExact: boolean;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function lineOf(kept: readonly Buffer[], lineBytes: number, maxLineBytes: number): Line {
  const [first] = kept;
  const all = kept.length === 1 && first !== undefined ? first : Buffer.concat(kept);
  let bytes = all;
  if (lineBytes === all.length && all.at(-1) === 13) bytes = all.subarray(0, -1);
  const cutBytes = Math.max(0, lineBytes - maxLineBytes - (lineBytes === all.length ? all.length - bytes.length : 0));
  if (cutBytes > 0) {
    const short = bytes.subarray(0, maxLineBytes);
    bytes = short.subarray(0, wholeCharacters(short));
  }
  try {
    return { text: strict.decode(bytes), cutBytes, shown: bytes.length + 1, isExact: true };
  } catch {
    return { text: bytes.toString("utf8"), cutBytes, shown: bytes.length + 1, isExact: false };
  }
}
