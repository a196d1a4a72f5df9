/** Deltas: what one superstep changed in one channel, as it is saved, and how it is applied again. */
import { StatewrightError } from "../base/errors.ts";
import { deepFreeze, isPlainObject } from "../base/json.ts";

/** One change inside a value, in the form of Immer: `path` leads from the value to the place. */
export interface Patch {
  readonly op: "add" | "replace" | "remove";
  readonly path: readonly (string | number)[];
  readonly value?: unknown;
}

/** What a superstep changed in one channel. */
export type Delta =
  | { readonly kind: "append"; readonly items: readonly unknown[] }
  | { readonly kind: "replace"; readonly value: unknown }
  | { readonly kind: "patch"; readonly patches: readonly Patch[] }
  | { readonly kind: "clear" };

/** The value after `delta`: the same that the fold gave when the delta was made. */
export function applyDelta(current: unknown, delta: Delta): unknown {
  switch (delta.kind) {
    case "append":
      if (!isList(current ?? [])) throw unfit();
      return Object.freeze([...((current ?? []) as readonly unknown[]), ...deepFreeze(delta.items)]);
    case "replace":
      return deepFreeze(delta.value);
    case "patch":
      return applyPatches(current ?? {}, delta.patches);
    case "clear":
      return undefined;
  }
}

/** Immer's own `applyPatches` loses a key `__proto__`, and copies once a patch instead of once for all of them. */
function applyPatches(current: unknown, patches: readonly Patch[]): unknown {
  const copies = new Set<object>();
  let value = current;
  for (const patch of patches) value = patched(value, patch, 0, copies);
  for (const copy of copies) Object.freeze(copy);
  return value;
}

/** `value` with the patch applied below `depth` of its path. What is in `copies` was made here and may be changed. */
function patched(value: unknown, patch: Patch, depth: number, copies: Set<object>): unknown {
  const key = patch.path[depth];
  if (key === undefined) return deepFreeze(patch.value);
  const copy = copyOf(value, copies);
  const last = depth === patch.path.length - 1;
  if (Array.isArray(copy)) {
    if (last && key === "length") {
      if (!isPlace(patch.value, copy.length)) throw unfit();
      copy.length = patch.value;
      return copy;
    }
    const index = Number(key);
    if (!isPlace(index, copy.length)) throw unfit();
    if (!last) copy[index] = patched(copy[index], patch, depth + 1, copies);
    else if (patch.op === "replace") copy[index] = deepFreeze(patch.value);
    else if (patch.op === "add") copy.splice(index, 0, deepFreeze(patch.value));
    else copy.splice(index, 1);
  } else if (last && patch.op === "remove") delete copy[key];
  else {
    const child = Object.hasOwn(copy, key) ? copy[key] : undefined;
    const item = patched(child, patch, depth + 1, copies);
    Object.defineProperty(copy, key, { value: item, enumerable: true, configurable: true, writable: true });
  }
  return copy;
}

function copyOf(value: unknown, copies: Set<object>): unknown[] | Record<string, unknown> {
  if (!Array.isArray(value) && !isPlainObject(value)) throw unfit();
  if (copies.has(value)) return value;
  const copy = Array.isArray(value) ? value.slice() : likeOf(value);
  copies.add(copy);
  return copy;
}

/** Without the prototype that its original does not have either: `Object.groupBy` makes such dictionaries. */
function likeOf(value: Record<string, unknown>): Record<string, unknown> {
  return Object.getPrototypeOf(value) === null ? Object.assign(Object.create(null), value) : { ...value };
}

/** Whether a change may be made there: at an item, or behind the last one. */
function isPlace(index: unknown, length: number): index is number {
  return Number.isInteger(index) && (index as number) >= 0 && (index as number) <= length;
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

function unfit(): StatewrightError {
  return new StatewrightError("store_corrupt", {
    what: "a saved change does not fit the value that it changes",
    next: "Restore the file from a backup, or fork from the last good checkpoint",
  });
}
