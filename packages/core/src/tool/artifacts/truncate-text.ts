/** Cutting text to a number of bytes: head and tail stay, a note between them says what is missing, no code point is split. */

/** Bytes of a text in UTF-8, where half of a surrogate pair counts as the three bytes that it becomes. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    bytes += unit < 0x800 ? 1 : 2;
    // The two halves of a pair are four bytes together.
    if (isHigh(unit) && isLow(text.charCodeAt(at + 1))) at += 1;
  }
  return bytes;
}

/** Whether a text has at most so many bytes; a long one is not looked at. */
export function isWithin(text: string, maxBytes: number): boolean {
  return text.length * 3 <= maxBytes || (text.length <= maxBytes && utf8Bytes(text) <= maxBytes);
}

/**
 * A text of at most `maxBytes`: the text itself, or its head and its tail with the note between them. `note` is told how
 * many bytes are missing. Where not even the note has room, it is cut.
 */
export function cutText(text: string, maxBytes: number, note: (cutBytes: number) => string): string {
  if (isWithin(text, maxBytes)) return text;
  const bytes = utf8Bytes(text);
  // The note that says the most is the longest: a smaller number has no more digits.
  const room = maxBytes - utf8Bytes(note(bytes));
  if (room < 0) return headOf(note(bytes), maxBytes).text;
  const head = headOf(text, Math.ceil(room / 2));
  const tail = tailOf(text, room - head.bytes);
  // Joined as a list, so that the text is made anew: a slice would keep all of the long one alive.
  return [head.text, note(bytes - head.bytes - tail.bytes), tail.text].join("");
}

interface Part {
  readonly text: string;
  readonly bytes: number;
}

/** The longest beginning of a text with at most so many bytes. */
function headOf(text: string, maxBytes: number): Part {
  let [at, bytes] = [0, 0];
  while (at < text.length) {
    const point = text.codePointAt(at) ?? 0;
    const size = sizeOf(point);
    if (bytes + size > maxBytes) break;
    bytes += size;
    at += point > 0xffff ? 2 : 1;
  }
  return { text: text.slice(0, at), bytes };
}

function tailOf(text: string, maxBytes: number): Part {
  let [at, bytes] = [text.length, 0];
  while (at > 0) {
    const pair = at > 1 && isLow(text.charCodeAt(at - 1)) && isHigh(text.charCodeAt(at - 2));
    const size = pair ? 4 : sizeOf(text.charCodeAt(at - 1));
    if (bytes + size > maxBytes) break;
    bytes += size;
    at -= pair ? 2 : 1;
  }
  return { text: text.slice(at), bytes };
}

function sizeOf(point: number): number {
  if (point < 0x80) return 1;
  if (point < 0x800) return 2;
  return point > 0xffff ? 4 : 3;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
