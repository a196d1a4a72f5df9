/** Cuts a value to a depth and a size. */
import { isPlainObject } from "../../base/json.ts";
import { toJsonPointer } from "../../base/json-pointer.ts";

/** Part left out of a value. */
export interface CutPart {
  /** JSON Pointer from the root of the state. */
  readonly path: string;
  /** Bytes of the part as JSON; with `items`, of all parts left out. */
  readonly bytes: number;
  /** Set when this part and all that follow it in the list or object were left out: their number. */
  readonly items?: number;
}

/** Limits of a value. */
export interface CutLimits {
  readonly path: readonly string[];
  readonly depth: number | undefined;
  readonly maxBytes: number | undefined;
}

/** Bytes of `null` in place of a part. */
const nullBytes = 4;

interface Cutter {
  bytesLeft: number;
  readonly cut: CutPart[];
}

/** Replaces parts above the limits by `null`; ends a list or an object where no byte is left. */
export function cutValue(
  value: unknown,
  { path, depth = Number.POSITIVE_INFINITY, maxBytes = Number.POSITIVE_INFINITY }: CutLimits,
): { readonly value: unknown; readonly cut: readonly CutPart[] } {
  const cutter: Cutter = { bytesLeft: maxBytes, cut: [] };
  return { value: cutPart(cutter, path, value, depth), cut: cutter.cut };
}

function cutPart(cutter: Cutter, path: readonly string[], value: unknown, depth: number): unknown {
  const isList = Array.isArray(value);
  const isContainer = isList || isPlainObject(value);
  const bytes = measureValue(value);
  const isWhole = bytes <= cutter.bytesLeft && (!isContainer || depth === Number.POSITIVE_INFINITY);
  if (isWhole) {
    cutter.bytesLeft -= bytes;
    return value;
  }
  const isEmpty = isContainer && Object.keys(value).length === 0;
  if (!isContainer || (depth === 0 && !isEmpty)) {
    cutter.cut.push({ path: toJsonPointer(path), bytes });
    cutter.bytesLeft -= nullBytes;
    return null;
  }
  cutter.bytesLeft -= 2;
  const entries = cutEntries(cutter, { path, isList, depth: depth - 1 }, Object.entries(value));
  return isList ? entries.map(([, item]) => item) : Object.fromEntries(entries);
}

function cutEntries(
  cutter: Cutter,
  { path, isList, depth }: { readonly path: readonly string[]; readonly isList: boolean; readonly depth: number },
  entries: readonly (readonly [string, unknown])[],
): readonly (readonly [string, unknown])[] {
  const kept: (readonly [string, unknown])[] = [];
  for (const [index, [key, item]] of entries.entries()) {
    if (cutter.bytesLeft <= 0) {
      const rest = entries.slice(index);
      const bytes = rest.reduce((sum, [, each]) => sum + measureValue(each), 0);
      cutter.cut.push({ path: toJsonPointer([...path, key]), bytes, items: rest.length });
      break;
    }
    cutter.bytesLeft -= isList ? 1 : measureValue(key) + 2;
    kept.push([key, cutPart(cutter, [...path, key], item, depth)]);
  }
  return kept;
}

/** Returns the bytes of a value as JSON; an estimate for values that JSON does not have. */
function measureValue(value: unknown): number {
  if (typeof value === "string") return new TextEncoder().encode(JSON.stringify(value)).length;
  if (typeof value !== "object" || value === null) return String(value).length;
  if (ArrayBuffer.isView(value)) return value.byteLength;
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + measureValue(item) + 1, 2);
  if (value instanceof Map || value instanceof Set) return measureValue([...value]);
  if (!isPlainObject(value)) return measureValue(String(value));
  return Object.entries(value).reduce((sum, [key, item]) => sum + measureValue(key) + measureValue(item) + 2, 2);
}
