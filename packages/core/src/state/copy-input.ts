/** Copies of values that callers pass: a later change of the caller's object changes no run, and no copy freezes it. */
import { isPlainObject, maxSavedDepth } from "../base/json.ts";
import { isOverwrite, overwrite } from "./channel.ts";
import type { Codec } from "./codec.ts";
import type { StateDefinition } from "./definition.ts";
import { copyObject } from "./delta.ts";

/** A copy in progress: copied containers by original, so that shared and circular references stay so. */
interface CopyTraversal {
  readonly codec: Codec;
  readonly copies: Map<object, unknown>;
}

/**
 * Copies an input of channels. Values of untracked channels, such as clients, are passed on by reference. An
 * unreadable input is returned as it is: its validation reports the cause.
 */
export function copyChannels<Input>(state: Pick<StateDefinition, "channels">, codec: Codec, input: Input): Input {
  if (!isPlainObject(input)) return copyInput(codec, input);
  const { channels } = state;
  const isTracked = (name: string): boolean => !Object.hasOwn(channels, name) || channels[name]?.kind !== "untracked";
  return copySafely(input, () => {
    const traversal = createTraversal(codec);
    return copyItems(input, (name, item) => (isTracked(name) ? copyValue(item, 1, traversal) : item));
  });
}

/** Copies a value. An unreadable value is returned as it is: its validation reports the cause. */
export function copyInput<Input>(codec: Codec, input: Input): Input {
  if (typeof input !== "object" || input === null) return input;
  return copySafely(input, () => copyValue(input, 0, createTraversal(codec)));
}

function copySafely<Input>(input: Input, copy: () => unknown): Input {
  try {
    return copy() as Input;
  } catch {
    return input;
  }
}

function createTraversal(codec: Codec): CopyTraversal {
  return { codec, copies: new Map() };
}

function copyValue(value: unknown, level: number, traversal: CopyTraversal): unknown {
  if (typeof value !== "object" || value === null || level > maxSavedDepth) return value;
  const { copies } = traversal;
  if (copies.has(value)) return copies.get(value);
  if (Object.isFrozen(value) && isDeepFrozen(value, new Set())) return value;
  if (isOverwrite(value)) return overwrite(copyValue(value.overwrite, level + 1, traversal));
  if (Array.isArray(value)) {
    // Another property than the items makes the list invalid: its validation reports the cause.
    if (Object.keys(value).length > value.length) return value;
    const items = value.slice();
    copies.set(value, items);
    for (let index = 0; index < items.length; index++)
      if (isObject(items[index])) items[index] = copyValue(items[index], level + 1, traversal);
    return items;
  }
  if (isPlainObject(value)) {
    const copy = copyObject(value);
    copies.set(value, copy);
    return assignItems(copy, (_name, item) => copyValue(item, level + 1, traversal));
  }
  const copyItem = (item: unknown): unknown => copyValue(item, level + 1, traversal);
  const copy = copyInstance(value, copyItem, traversal.codec);
  copies.set(value, copy);
  return copy;
}

/** Returns true for plain data that is frozen, such as messages from the state of an earlier run. */
function isDeepFrozen(value: unknown, visited: Set<object>): boolean {
  if (typeof value !== "object" || value === null || visited.has(value)) return true;
  if (!Object.isFrozen(value) || !(Array.isArray(value) || isPlainObject(value))) return false;
  visited.add(value);
  for (const item of Object.values(value)) if (!isDeepFrozen(item, visited)) return false;
  return true;
}

function copyItems(value: Record<string, unknown>, copyItem: (name: string, item: unknown) => unknown): object {
  return assignItems(copyObject(value), copyItem);
}

function assignItems(
  copy: Record<string, unknown>,
  copyItem: (name: string, item: unknown) => unknown,
): Record<string, unknown> {
  for (const name in copy) {
    const item = copy[name];
    if (!isObject(item)) continue;
    // An assignment to an own key `__proto__` of a plain object would set the prototype.
    if (name === "__proto__") Object.defineProperty(copy, name, { value: copyItem(name, item) });
    else copy[name] = copyItem(name, item);
  }
  return copy;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** Copies an instance of a class; an instance that the codec cannot encode is passed on by reference. */
function copyInstance(value: object, copyItem: (item: unknown) => unknown, codec: Codec): unknown {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Map.prototype)
    return new Map([...(value as Map<unknown, unknown>)].map(([key, item]) => [copyItem(key), copyItem(item)]));
  if (prototype === Set.prototype) return new Set([...(value as Set<unknown>)].map(copyItem));
  if (prototype === Date.prototype) return new Date((value as Date).getTime());
  if (ArrayBuffer.isView(value)) return value instanceof DataView ? value : Uint8Array.prototype.slice.call(value);
  if (value instanceof Promise || value instanceof RegExp) return value;
  try {
    return codec.decode(codec.encode(value, "an input"));
  } catch {
    return value;
  }
}
