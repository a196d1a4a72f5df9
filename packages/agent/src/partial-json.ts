/** JSON that is still being written: what is whole of it, closed so that it can be read. */

/** The value of a JSON text that may end anywhere; undefined when nothing of an object or a list is there, or when it is no JSON. */
export function partialJson(text: string): unknown {
  const closed = closedJson(text);
  if (closed === undefined) return undefined;
  try {
    return JSON.parse(closed);
  } catch {
    return undefined;
  }
}

/** Where a text may be cut, and what closes it there. */
interface Cut {
  readonly end: number;
  readonly closers: string;
}

/**
 * The text up to the last place where it can be closed. A text that is open is closed as it is, what may still change (a
 * number, a word, a key) is left out.
 */
function closedJson(text: string): string | undefined {
  const first = text.search(/\S/);
  if (first < 0 || (text[first] !== "{" && text[first] !== "[")) return undefined;
  const open: string[] = [];
  let cut: Cut | undefined;
  let isKey = false;
  for (let at = first; at < text.length; at++) {
    const sign = text[at];
    if (sign === '"') {
      const end = endOfText(text, at);
      if (end === undefined) return isKey ? atCut(text, cut) : `${withoutHalfEscape(text.slice(0))}"${closersOf(open)}`;
      at = end;
      if (!isKey) cut = { end: at + 1, closers: closersOf(open) };
    } else if (sign === "{" || sign === "[") {
      open.push(sign === "{" ? "}" : "]");
      isKey = sign === "{";
      cut = { end: at + 1, closers: closersOf(open) };
    } else if (sign === "}" || sign === "]") {
      open.pop();
      isKey = false;
      cut = { end: at + 1, closers: closersOf(open) };
      if (open.length === 0) return text.slice(0, at + 1);
    } else if (sign === ",") {
      // Whatever stood before it is whole.
      cut = { end: at, closers: closersOf(open) };
      isKey = open.at(-1) === "}";
    } else if (sign === ":") isKey = false;
  }
  return atCut(text, cut);
}

function atCut(text: string, cut: Cut | undefined): string | undefined {
  return cut === undefined ? undefined : text.slice(0, cut.end) + cut.closers;
}

function closersOf(open: readonly string[]): string {
  return open.toReversed().join("");
}

/** The place of the quote that ends the text which begins at `start`. */
function endOfText(text: string, start: number): number | undefined {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at;
  }
  return undefined;
}

/** An escape that is not whole yet is left out. */
function withoutHalfEscape(text: string): string {
  const half = /\\(?:u[0-9a-fA-F]{0,3})?$/.exec(text)?.[0];
  if (half === undefined) return text;
  const before = text.slice(0, -half.length);
  const slashes = /\\*$/.exec(before)?.[0].length ?? 0;
  // A slash that is itself escaped begins no escape.
  return slashes % 2 === 0 ? before : text;
}
