/**
 * Copies of the data that a tool returns for programs and people: `details`, `provider`, and a `value` without an
 * output schema. A part that no codec can save is flattened to plain data, or dropped and reported. The tool did run:
 * such a part must not make its call fail.
 */
import { describeThrown } from "../base/errors.ts";
import { ignoreRejections } from "../base/ignore-rejections.ts";
import { describeValue, isData, isPlainObject, maxDepth } from "../base/json.ts";
import type { Codec } from "../state/codec.ts";
import { copyInput } from "../state/copy-input.ts";

/** Receives the path of each dropped part, with a description of the part. */
export type OnDropped = (path: string, found: string) => void;

/** Copy of a part; undefined for a dropped part. */
type Copied = { readonly copy: unknown } | undefined;

interface CopyTraversal {
  readonly codec: Codec;
  readonly onDropped: OnDropped;
  /** Keys from the root to the current part. */
  readonly path: (string | number)[];
  /** Enclosing objects, to detect cycles. */
  readonly ancestors: unknown[];
}

/**
 * Returns a copy of `value` that can be saved, and calls `onDropped` for each part that cannot be saved. Parts that the
 * codec saves keep their class. Other instances become their `toJSON()`, their entries (`Headers`, `FormData`), or
 * their own enumerable properties. Functions, symbols, cycles and instances without such properties are dropped: the
 * key of an object is removed, the item of a list becomes null. Returns undefined when the whole value is dropped.
 * Contract: never throws.
 */
export function copyResultData(codec: Codec, value: unknown, name: string, onDropped: OnDropped): unknown {
  if (isData(value)) return copyInput(codec, value);
  return copyPart(value, { codec, onDropped, path: [name], ancestors: [] })?.copy;
}

function copyPart(value: unknown, traversal: CopyTraversal): Copied {
  if (typeof value === "function" || typeof value === "symbol") return drop(value, traversal);
  if (typeof value !== "object" || value === null) return { copy: value };
  const { ancestors } = traversal;
  if (ancestors.includes(value)) return drop(value, traversal, "a cycle");
  if (ancestors.length >= maxDepth - 1) return drop(value, traversal, `more than ${maxDepth} levels`);
  ancestors.push(value);
  try {
    return copyContents(value, traversal);
  } catch (thrown) {
    return drop(value, traversal, `a value that cannot be read (${describeThrown(thrown)})`);
  } finally {
    ancestors.pop();
  }
}

function drop(value: unknown, { path, onDropped }: CopyTraversal, found: string = describePart(value)): undefined {
  ignoreRejections(value);
  onDropped(path.join("."), found);
  return undefined;
}

function describePart(value: unknown): string {
  return typeof value === "symbol" ? "a symbol" : describeValue(value);
}

function copyContents(value: object, traversal: CopyTraversal): Copied {
  if (Array.isArray(value)) return { copy: copyList(value, traversal) };
  if (isPlainObject(value)) return { copy: copyEntries(Object.keys(value), value, traversal) };
  const saved = copySaved(value, traversal.codec);
  if (saved !== undefined) return saved;
  if (value instanceof Map) return { copy: copyMap(value, traversal) };
  if (value instanceof Set) return { copy: new Set(copyItems([...value], traversal).map(({ copy }) => copy)) };
  if (value instanceof Error) return { copy: copyError(value, traversal) };
  return flattenInstance(value, traversal);
}

/** Copies an instance that the codec saves; undefined for another instance. */
function copySaved(value: object, codec: Codec): Copied {
  try {
    return { copy: codec.decode(codec.encode(value, "a part of a result")) };
  } catch {
    // The caller flattens or drops the instance, and reports a dropped one.
    return undefined;
  }
}

function copyChild(child: unknown, key: string | number, traversal: CopyTraversal): Copied {
  traversal.path.push(key);
  const copied = copyPart(child, traversal);
  traversal.path.pop();
  return copied;
}

function copyList(list: readonly unknown[], traversal: CopyTraversal): readonly unknown[] {
  return Array.from(list, (item, index) => {
    const copied = copyChild(item, index, traversal);
    return copied === undefined ? null : copied.copy;
  });
}

/** Copies items without the dropped ones. */
function copyItems(items: readonly unknown[], traversal: CopyTraversal): readonly { readonly copy: unknown }[] {
  return items.flatMap((item, index) => copyChild(item, index, traversal) ?? []);
}

function copyMap(map: ReadonlyMap<unknown, unknown>, traversal: CopyTraversal): ReadonlyMap<unknown, unknown> {
  const entries = [...map].flatMap(([key, item], index) => {
    const name = typeof key === "string" ? key : index;
    const [keyCopy, itemCopy] = [copyChild(key, name, traversal), copyChild(item, name, traversal)];
    return keyCopy === undefined || itemCopy === undefined ? [] : [[keyCopy.copy, itemCopy.copy] as const];
  });
  return new Map(entries);
}

function copyEntries(keys: readonly string[], source: object, traversal: CopyTraversal): Record<string, unknown> {
  const copy: Record<string, unknown> = {};
  for (const key of keys) {
    const copied = copyProperty(source, key, traversal);
    if (copied !== undefined)
      Object.defineProperty(copy, key, { value: copied.copy, enumerable: true, configurable: true, writable: true });
  }
  return copy;
}

function copyProperty(source: object, key: string, traversal: CopyTraversal): Copied {
  let child: unknown;
  try {
    child = source[key as keyof typeof source];
  } catch (thrown) {
    traversal.path.push(key);
    drop(undefined, traversal, `a value that cannot be read (${describeThrown(thrown)})`);
    traversal.path.pop();
    return undefined;
  }
  return copyChild(child, key, traversal);
}

/** Returns name, message and own properties of an error whose properties the codec cannot save. */
function copyError(error: Error, traversal: CopyTraversal): Record<string, unknown> {
  const { name, message } = error;
  const keys = [...Object.keys(error), ...(error.cause === undefined ? [] : ["cause"])];
  return { name, message, ...copyEntries(keys, error, traversal) };
}

function flattenInstance(value: object, traversal: CopyTraversal): Copied {
  if ("toJSON" in value && typeof value.toJSON === "function") return copyPart(value.toJSON(), traversal);
  const keys = Object.keys(value);
  if (keys.length > 0) return { copy: copyEntries(keys, value, traversal) };
  if (!("entries" in value) || typeof value.entries !== "function") return drop(value, traversal);
  const entries: unknown = Object.fromEntries(value.entries());
  return copyPart(entries, traversal);
}
