/** Splits streamed text into lines at "\n" only: JSON may contain other Unicode line separators. */

/** Reader of text chunks. */
export interface LineReader {
  /** Adds a chunk: each complete line is passed on. */
  readonly add: (chunk: string) => void;
  /** Returns the text after the last line break, at the end of the stream. */
  readonly flush: () => string;
}

/**
 * Splits text into lines. Calls `onTooLong` for a line longer than `maxLength` characters, and ignores all later
 * text.
 */
export function createLineReader(
  maxLength: number,
  onLine: (line: string) => void,
  onTooLong: (length: number) => void,
): LineReader {
  let parts: string[] = [];
  let length = 0;
  let overflowed = false;
  const appendPart = (part: string): void => {
    if (part === "") return;
    length += part.length;
    if (length > maxLength) {
      overflowed = true;
      parts = [];
      onTooLong(length);
    } else parts.push(part);
  };
  const takeLine = (): string => {
    const line = parts.join("");
    parts = [];
    length = 0;
    return line;
  };
  return {
    add: (chunk) => {
      let start = 0;
      for (let end = chunk.indexOf("\n"); end >= 0 && !overflowed; end = chunk.indexOf("\n", start)) {
        appendPart(chunk.slice(start, end));
        start = end + 1;
        if (!overflowed) onLine(takeLine());
      }
      if (!overflowed) appendPart(chunk.slice(start));
    },
    flush: takeLine,
  };
}
