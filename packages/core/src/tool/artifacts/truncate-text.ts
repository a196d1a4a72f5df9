/** Truncates text to a number of bytes: keeps head and tail with a note in between, and never splits a code point. */

/** Counts the UTF-8 bytes of a text. A lone surrogate counts three bytes, the size of its replacement character. */
export function countUtf8Bytes(text: string): number {
  let bytes = text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    // A surrogate pair has four bytes.
    if (isHighSurrogate(unit) && isLowSurrogate(text.charCodeAt(index + 1))) index += 1;
  }
  return bytes;
}

/** Returns true if a text has at most `maxBytes` bytes; does not scan texts of more characters. */
export function fitsBytes(text: string, maxBytes: number): boolean {
  return text.length * 3 <= maxBytes || (text.length <= maxBytes && countUtf8Bytes(text) <= maxBytes);
}

/**
 * Truncates a text to `maxBytes`: head, note and tail. `note` receives the number of removed bytes. The note itself
 * is truncated when `maxBytes` is smaller than the note.
 */
export function truncateText(text: string, maxBytes: number, formatNote: (cutBytes: number) => string): string {
  if (fitsBytes(text, maxBytes)) return text;
  const bytes = countUtf8Bytes(text);
  // The note for all bytes is the longest note: a smaller number has no more digits.
  const remainingBytes = maxBytes - countUtf8Bytes(formatNote(bytes));
  if (remainingBytes < 0) return takeHead(formatNote(bytes), maxBytes).text;
  const head = takeHead(text, Math.ceil(remainingBytes / 2));
  const tail = takeTail(text, remainingBytes - head.bytes);
  // Join creates a new string: a slice would keep the long string in memory.
  return [head.text, formatNote(bytes - head.bytes - tail.bytes), tail.text].join("");
}

interface TextPart {
  readonly text: string;
  readonly bytes: number;
}

/** Returns the longest head of at most `maxBytes` bytes. */
function takeHead(text: string, maxBytes: number): TextPart {
  let [at, bytes] = [0, 0];
  while (at < text.length) {
    const point = text.codePointAt(at) ?? 0;
    const size = countPointBytes(point);
    if (bytes + size > maxBytes) break;
    bytes += size;
    at += point > 0xffff ? 2 : 1;
  }
  return { text: text.slice(0, at), bytes };
}

function takeTail(text: string, maxBytes: number): TextPart {
  let [at, bytes] = [text.length, 0];
  while (at > 0) {
    const pair = at > 1 && isLowSurrogate(text.charCodeAt(at - 1)) && isHighSurrogate(text.charCodeAt(at - 2));
    const size = pair ? 4 : countPointBytes(text.charCodeAt(at - 1));
    if (bytes + size > maxBytes) break;
    bytes += size;
    at -= pair ? 2 : 1;
  }
  return { text: text.slice(at), bytes };
}

function countPointBytes(point: number): number {
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point > 0xffff ? 4 : 3;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
