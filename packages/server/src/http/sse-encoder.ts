/** Encoder of server-sent events: every string that leaves a server as an event stream is built here. */
import type { SseFrame, SseLine } from "./route.ts";

/** Grammar of event names and event ids: no character that can end a line. */
const namePattern = /^[A-Za-z0-9_.:|~/-]+$/;

/**
 * Characters that JSON leaves as they are, and at which some readers break lines: Python's `splitlines` does at U+0085,
 * U+2028 and U+2029.
 */
const unicodeLineBreaks = /[\u0085\u2028\u2029]/g;

/** Characters that may end a line. */
const lineBreaks = /[\p{Cc}\p{Zl}\p{Zp}]+/gu;

/** Encodes lines of event streams. */
export interface SseEncoder {
  /**
   * Encodes a line. A comment ends with a single newline, so that readers see no empty event; a frame ends with a blank
   * line. Line breaks of comments and of literal text become spaces. Throws a `TypeError` for a name or an id outside the grammar, and for data that is not JSON.
   */
  encode(line: SseLine): string;
}

/**
 * Creates an encoder. The JSON of an object is kept as long as the object, so that readers of the same events share a
 * single encoding; contract: data is not changed after its first encoding.
 */
export function createSseEncoder(): SseEncoder {
  const encoded: WeakMap<object, string> = new WeakMap();

  function encodeData(data: unknown): string {
    if (typeof data !== "object" || data === null) return toJsonLine(data);
    let text = encoded.get(data);
    if (text === undefined) {
      text = toJsonLine(data);
      encoded.set(data, text);
    }
    return text;
  }

  return {
    encode: (line) => {
      if ("comment" in line) return `: ${line.comment.replace(lineBreaks, " ")}\n`;
      if ("text" in line) return `data: ${line.text.replace(lineBreaks, " ")}\n\n`;
      return `${encodeNames(line)}data: ${encodeData(line.data)}\n\n`;
    },
  };
}

function encodeNames({ id, event }: SseFrame): string {
  const idLine = id === undefined ? "" : `id: ${checkName("id", id)}\n`;
  return event === undefined ? idLine : `${idLine}event: ${checkName("event", event)}\n`;
}

function checkName(field: "id" | "event", name: string): string {
  if (namePattern.test(name)) return name;
  const shown = JSON.stringify(name.slice(0, 80));
  throw new TypeError(
    `event stream: expected characters of A-Z a-z 0-9 _ . : | ~ / - in "${field}", got ${shown}. Put other text into the data.`,
  );
}

/** Returns data as JSON without a line break. */
function toJsonLine(data: unknown): string {
  const text: string | undefined = JSON.stringify(data);
  if (text === undefined) throw new TypeError(`event stream: expected data as JSON, got ${typeof data}. Pass null.`);
  return text.replace(unicodeLineBreaks, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
