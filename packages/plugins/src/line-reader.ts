/** Text as it comes, cut into lines at "\n" and nowhere else: other marks of a line's end may stand inside JSON. */

/** Takes text in any pieces. */
export interface LineReader {
  readonly add: (chunk: string) => void;
  /** What came after the last line's end, at the end of the text. */
  readonly rest: () => string;
}

/** Cut text into lines. One that grows over `maxLength` characters is given to `onTooLong`, and nothing is read after it. */
export function lineReader(
  maxLength: number,
  onLine: (line: string) => void,
  onTooLong: (length: number) => void,
): LineReader {
  let parts: string[] = [];
  let length = 0;
  let overflowed = false;
  const keep = (part: string): void => {
    if (part === "") return;
    length += part.length;
    if (length > maxLength) {
      overflowed = true;
      parts = [];
      onTooLong(length);
    } else parts.push(part);
  };
  const take = (): string => {
    const line = parts.join("");
    parts = [];
    length = 0;
    return line;
  };
  return {
    add: (chunk) => {
      let start = 0;
      for (let end = chunk.indexOf("\n"); end >= 0 && !overflowed; end = chunk.indexOf("\n", start)) {
        keep(chunk.slice(start, end));
        start = end + 1;
        if (!overflowed) onLine(take());
      }
      if (!overflowed) keep(chunk.slice(start));
    },
    rest: take,
  };
}
