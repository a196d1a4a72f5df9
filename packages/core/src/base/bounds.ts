/** Size limits of data from outside, checked before the data is used. */
import { isPlainObject, maxDepth, maxValueCharacters } from "./json.ts";

/**
 * Limits of a value: text of all keys and strings, nesting levels, and parts (items of lists and entries of objects).
 */
export interface Bounds {
  readonly text: number;
  /** Unit of `text`. UTF-8 bytes are counted per character; the character count of a string costs nothing. */
  readonly in: "bytes" | "characters";
  readonly levels: number;
  readonly parts: number;
  /** True: an object inside itself counts as a single part. Otherwise a cycle exceeds the levels. */
  readonly allowsCycles?: boolean;
}

/** Limits for the arguments of a tool call. */
export const argumentBounds: Bounds = { text: 2 ** 20, in: "bytes", levels: 64, parts: 100_000 };

/** Limits for a result or update of a tool: the largest value that a store accepts. */
export const resultBounds: Bounds = {
  text: maxValueCharacters,
  in: "characters",
  levels: maxDepth,
  parts: 10_000_000,
  allowsCycles: true,
};

/** Keys that reach the prototype of an object when code copies objects carelessly. */
const hostileKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Reason for rejecting data from outside; `text` completes a sentence whose subject is the data. */
export interface InvalidData {
  readonly reason: "bounds" | "key";
  readonly text: string;
}

interface Traversal {
  textLeft: number;
  partsLeft: number;
  hostileKey: string | undefined;
  /** Enclosing objects, if the bounds allow cycles. */
  readonly ancestors: object[] | undefined;
}

/**
 * Checks data from outside. Returns the reason for a rejection: a limit is exceeded, or a key is forbidden. Objects
 * that are not JSON count as a single part. The traversal stops at the limits.
 */
export function findInvalidData(value: unknown, bounds: Bounds): InvalidData | undefined {
  const traversal: Traversal = {
    textLeft: bounds.text,
    partsLeft: bounds.parts,
    hostileKey: undefined,
    ancestors: bounds.allowsCycles === true ? [] : undefined,
  };
  const excess = findExcess(value, bounds, traversal, 1);
  if (excess !== undefined) return { reason: "bounds", text: excess };
  return traversal.hostileKey === undefined
    ? undefined
    : { reason: "key", text: `have the key "${traversal.hostileKey}"` };
}

function findExcess(value: unknown, bounds: Bounds, traversal: Traversal, level: number): string | undefined {
  if (typeof value === "string") return checkText(value, bounds, traversal);
  if (typeof value !== "object" || value === null) return undefined;
  if (ArrayBuffer.isView(value)) traversal.textLeft -= value.byteLength;
  if (traversal.textLeft < 0) return describeTooLarge(bounds);
  if (!Array.isArray(value) && !isPlainObject(value)) return undefined;
  if (traversal.ancestors?.includes(value) === true) return undefined;
  if (level > bounds.levels) return `are nested deeper than ${bounds.levels} levels`;
  traversal.ancestors?.push(value);
  const excess = findExcessInside(value, bounds, traversal, level);
  traversal.ancestors?.pop();
  return excess;
}

function findExcessInside(
  value: readonly unknown[] | Record<string, unknown>,
  bounds: Bounds,
  traversal: Traversal,
  level: number,
): string | undefined {
  const isList = Array.isArray(value);
  const keys = isList ? undefined : Object.keys(value);
  traversal.partsLeft -= isList ? value.length : (keys?.length ?? 0);
  if (traversal.partsLeft < 0) return `have more than ${bounds.parts.toLocaleString("en")} parts`;
  if (isList) {
    for (const item of value) {
      const over = findExcess(item, bounds, traversal, level + 1);
      if (over !== undefined) return over;
    }
    return undefined;
  }
  for (const key of keys ?? []) {
    if (hostileKeys.has(key)) traversal.hostileKey ??= key;
    const over =
      checkText(key, bounds, traversal) ?? findExcess(readProperty(value, key), bounds, traversal, level + 1);
    if (over !== undefined) return over;
  }
  return undefined;
}

/** Returns undefined for a property whose getter throws: the reader of the value reports it. */
function readProperty(value: object, key: string): unknown {
  try {
    return value[key as keyof typeof value];
  } catch {
    return undefined;
  }
}

function checkText(text: string, bounds: Bounds, traversal: Traversal): string | undefined {
  traversal.textLeft -= bounds.in === "characters" ? text.length : countBytes(text, traversal.textLeft);
  return traversal.textLeft < 0 ? describeTooLarge(bounds) : undefined;
}

function describeTooLarge({ text, in: unit }: Bounds): string {
  return `hold more than ${text.toLocaleString("en")} ${unit}`;
}

/** Counts the UTF-8 bytes of a text; stops counting above `enough`. */
function countBytes(text: string, limit: number): number {
  let bytes = 0;
  for (let index = 0; index < text.length && bytes <= limit; index++) {
    const unit = text.charCodeAt(index);
    // Each half of a surrogate pair counts two of the four bytes.
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
  }
  return bytes;
}
