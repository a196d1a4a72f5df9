/** Bounds of data from outside: how much of it is looked at before anything is made of it. */
import { deepestLevel, isPlainObject, largestValue } from "./json.ts";

/** How much a value may hold: text in all its keys and values, levels, and parts (values in lists and objects). */
export interface Bounds {
  readonly text: number;
  /** Bytes are those of UTF-8, counted one by one; characters are told in no time, however long a text is. */
  readonly in: "bytes" | "characters";
  readonly levels: number;
  readonly parts: number;
}

/** What the arguments of one tool call may hold. */
export const argumentBounds: Bounds = { text: 2 ** 20, in: "bytes", levels: 64, parts: 100_000 };

/** What one result or update of a tool may hold: no store takes more text, and nobody makes a copy of more. */
export const resultBounds: Bounds = { text: largestValue, in: "characters", levels: deepestLevel, parts: 10_000_000 };

/** Keys that lead to the prototype of an object wherever somebody copies them without care. */
const hostileKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** What is wrong with data from outside, as the rest of a sentence about it. */
export interface Unfit {
  readonly why: "bounds" | "key";
  readonly text: string;
}

interface Walk {
  textLeft: number;
  partsLeft: number;
  hostile: string | undefined;
}

/**
 * Why a value is not taken from outside: it holds more than its bounds, or a key that no outsider may set. Objects that
 * JSON does not know count as one part. It walks no further than the bounds.
 */
export function unfitData(value: unknown, bounds: Bounds): Unfit | undefined {
  const walk: Walk = { textLeft: bounds.text, partsLeft: bounds.parts, hostile: undefined };
  const over = overFrom(value, bounds, walk, 1);
  if (over !== undefined) return { why: "bounds", text: over };
  return walk.hostile === undefined ? undefined : { why: "key", text: `have the key "${walk.hostile}"` };
}

function overFrom(value: unknown, bounds: Bounds, walk: Walk, level: number): string | undefined {
  if (typeof value === "string") return overText(value, bounds, walk);
  if (typeof value !== "object" || value === null) return undefined;
  if (ArrayBuffer.isView(value)) walk.textLeft -= value.byteLength;
  if (walk.textLeft < 0) return tooLarge(bounds);
  const isList = Array.isArray(value);
  if (!isList && !isPlainObject(value)) return undefined;
  if (level > bounds.levels) return `are nested deeper than ${bounds.levels} levels`;
  const keys = isList ? undefined : Object.keys(value);
  walk.partsLeft -= isList ? value.length : (keys?.length ?? 0);
  if (walk.partsLeft < 0) return `have more than ${bounds.parts.toLocaleString("en")} parts`;
  if (isList) {
    for (const item of value) {
      const over = overFrom(item, bounds, walk, level + 1);
      if (over !== undefined) return over;
    }
    return undefined;
  }
  for (const key of keys ?? []) {
    if (hostileKeys.has(key)) walk.hostile ??= key;
    const over = overText(key, bounds, walk) ?? overFrom(value[key], bounds, walk, level + 1);
    if (over !== undefined) return over;
  }
  return undefined;
}

function overText(text: string, bounds: Bounds, walk: Walk): string | undefined {
  walk.textLeft -= bounds.in === "characters" ? text.length : bytesOf(text, walk.textLeft);
  return walk.textLeft < 0 ? tooLarge(bounds) : undefined;
}

function tooLarge({ text, in: unit }: Bounds): string {
  return `hold more than ${text.toLocaleString("en")} ${unit}`;
}

/** Bytes of a text in UTF-8, counted until there are more than `enough`. */
function bytesOf(text: string, enough: number): number {
  let bytes = 0;
  for (let index = 0; index < text.length && bytes <= enough; index++) {
    const unit = text.charCodeAt(index);
    // Each half of a pair is two of its four bytes.
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
  }
  return bytes;
}
