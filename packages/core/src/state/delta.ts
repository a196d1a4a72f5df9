/** Deltas: saved changes of a channel in a superstep. */
import { StatewrightError } from "../base/errors.ts";
import { deepFreeze, isPlainObject } from "../base/json.ts";

/** A change inside a value, in the format of Immer: `path` is the path from the root value. */
export interface Patch {
  readonly op: "add" | "replace" | "remove";
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
}

/** Change of a channel in a superstep. */
export type Delta =
  | { readonly kind: "append"; readonly items: readonly unknown[] }
  | { readonly kind: "replace"; readonly value: unknown }
  | { readonly kind: "patch"; readonly patches: readonly Patch[] }
  | { readonly kind: "clear" };

/** Applies a delta. Returns the same value as the reducer that created the delta. */
export function applyDelta(current: unknown, delta: Delta): unknown {
  switch (delta.kind) {
    case "append":
      if (!isList(current ?? [])) throw createMismatchError();
      return Object.freeze([...((current ?? []) as readonly unknown[]), ...deepFreeze(delta.items)]);
    case "replace":
      return deepFreeze(delta.value);
    case "patch":
      return applyPatches(current ?? {}, delta.patches);
    case "clear":
      return undefined;
  }
}

/**
 * Replaces Immer's `applyPatches`, which loses the key `__proto__` and copies once per patch instead of once in
 * total.
 */
function applyPatches(current: unknown, patches: readonly Patch[]): unknown {
  const copies = new Set<object>();
  let value = current;
  for (const patch of patches) value = applyPatch(value, patch, 0, copies);
  for (const copy of copies) Object.freeze(copy);
  return value;
}

/** Applies a patch below `depth` of its path. Objects in `copies` are new and may be mutated. */
function applyPatch(value: unknown, patch: Patch, depth: number, copies: Set<object>): unknown {
  const key = patch.path[depth];
  if (key === undefined) return deepFreeze(patch.value);
  const copy = getMutableCopy(value, copies);
  const isLast = depth === patch.path.length - 1;
  if (Array.isArray(copy)) {
    if (isLast && key === "length") {
      if (!isValidIndex(patch.value, copy.length)) throw createMismatchError();
      copy.length = patch.value;
      return copy;
    }
    const index = Number(key);
    if (!isValidIndex(index, copy.length)) throw createMismatchError();
    if (!isLast) copy[index] = applyPatch(copy[index], patch, depth + 1, copies);
    else if (patch.op === "replace") copy[index] = deepFreeze(patch.value);
    else if (patch.op === "add") copy.splice(index, 0, deepFreeze(patch.value));
    else copy.splice(index, 1);
  } else if (isLast && patch.op === "remove") delete copy[key];
  else {
    const child = Object.hasOwn(copy, key) ? copy[key] : undefined;
    const item = applyPatch(child, patch, depth + 1, copies);
    Object.defineProperty(copy, key, { value: item, enumerable: true, configurable: true, writable: true });
  }
  return copy;
}

function getMutableCopy(value: unknown, copies: Set<object>): unknown[] | Record<string, unknown> {
  if (!Array.isArray(value) && !isPlainObject(value)) throw createMismatchError();
  if (copies.has(value)) return value;
  const copy = Array.isArray(value) ? value.slice() : copyObject(value);
  copies.add(copy);
  return copy;
}

/** Copies an object and keeps a null prototype, as of `Object.groupBy`. */
export function copyObject(value: Record<string, unknown>): Record<string, unknown> {
  return Object.getPrototypeOf(value) === null ? Object.assign(Object.create(null), value) : { ...value };
}

/** Returns true if `index` is the index of an item or the end of the list. */
function isValidIndex(index: unknown, length: number): index is number {
  return Number.isInteger(index) && (index as number) >= 0 && (index as number) <= length;
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function createMismatchError(): StatewrightError {
  return new StatewrightError("store_corrupt", {
    what: "a saved change does not match its value",
    next: "Restore the file from a backup, or fork from the last good checkpoint",
  });
}
