/** Structural equality of saved values. */
import { isPlainObject } from "./json.ts";

/** Returns true for equal values, at any depth. Maps and sets are equal in the same order only. */
export function isSameValue(one: unknown, other: unknown): boolean {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one)) return Array.isArray(other) && areSameItems(one, other);
  if (isPlainObject(one)) {
    if (!isPlainObject(other)) return false;
    const keys = Object.keys(one);
    return (
      keys.length === Object.keys(other).length &&
      keys.every((key) => Object.hasOwn(other, key) && isSameValue(one[key], other[key]))
    );
  }
  return Object.getPrototypeOf(one) === Object.getPrototypeOf(other) && isSameInstance(one, other);
}

function areSameItems(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => isSameValue(item, other[index]));
}

/** Compares two objects of the same class, other than plain objects and lists. */
function isSameInstance(one: object, other: object): boolean {
  if (one instanceof Date) return other instanceof Date && Object.is(one.getTime(), other.getTime());
  if (one instanceof Map) return other instanceof Map && areSameItems([...one].flat(), [...other].flat());
  if (one instanceof Set) return other instanceof Set && areSameItems([...one], [...other]);
  if (one instanceof Error) return other instanceof Error && isSameValue(listErrorParts(one), listErrorParts(other));
  if (ArrayBuffer.isView(one)) return ArrayBuffer.isView(other) && areSameItems(toBytes(one), toBytes(other));
  if (one instanceof ArrayBuffer)
    return other instanceof ArrayBuffer && areSameItems([...new Uint8Array(one)], [...new Uint8Array(other)]);
  return String(one) === String(other) && isSameValue({ ...one }, { ...other });
}

function listErrorParts(error: Error): readonly unknown[] {
  return [error.name, error.message, error.stack, error.cause, { ...error }];
}

function toBytes(view: ArrayBufferView): readonly number[] {
  return [...new Uint8Array(view.buffer, view.byteOffset, view.byteLength)];
}
