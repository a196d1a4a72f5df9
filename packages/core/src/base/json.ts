/** Plain data: the JSON type and deep freezing. */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

type Primitive = string | number | bigint | boolean | symbol | null | undefined;

/** `Value` with every property, item, entry and member read-only, to any depth. */
export type DeepReadonly<Value> = unknown extends Value
  ? Value
  : Value extends Primitive | ((...args: never[]) => unknown) | Date | RegExp | URL | Error
    ? Value
    : Value extends ReadonlyMap<infer Key, infer Item>
      ? ReadonlyMap<DeepReadonly<Key>, DeepReadonly<Item>>
      : Value extends ReadonlySet<infer Item>
        ? ReadonlySet<DeepReadonly<Item>>
        : Value extends ArrayBufferView
          ? Value
          : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

/**
 * Freeze a value and all that it holds, entries of maps and sets too. Typed arrays cannot be frozen, and a frozen regular
 * expression cannot match: both stay as they are. What was walked before is not walked again, so that the cost is that of
 * the new parts.
 */
export function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || value instanceof RegExp) return value;
  if (Object.isFrozen(value)) {
    // Somebody else's Object.freeze, such as that of a read-only schema, goes one level deep: look inside once.
    if (walked.has(value)) return value;
    walked.add(value);
  } else close(value);
  for (const key of Object.keys(value)) deepFreeze(value[key as keyof Value]);
  return value;
}

const walked: WeakSet<object> = new WeakSet();

function close(value: object): void {
  if (value instanceof Map) {
    Object.defineProperties(value, closedMap);
    for (const [key, item] of value) {
      deepFreeze(key);
      deepFreeze(item);
    }
  } else if (value instanceof Set) {
    Object.defineProperties(value, closedSet);
    for (const item of value) deepFreeze(item);
  } else if (value instanceof Date) Object.defineProperties(value, closedDate);
  Object.freeze(value);
}

/** `Object.freeze` leaves what stands behind methods open: these take the place of the methods that change. */
const closedMap: PropertyDescriptorMap = closing(["set", "delete", "clear"]);
const closedSet: PropertyDescriptorMap = closing(["add", "delete", "clear"]);
const closedDate: PropertyDescriptorMap = closing(
  Object.getOwnPropertyNames(Date.prototype).filter((name) => name.startsWith("set")),
);

function closing(methods: readonly string[]): PropertyDescriptorMap {
  return Object.fromEntries(methods.map((name) => [name, { value: refuseChange }]));
}

function refuseChange(): never {
  throw new TypeError("Cannot change a frozen value; make a new one");
}

/** Tell whether two values of plain data are equal; other objects are equal only to themselves. */
export function sameData(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (Array.isArray(left) && Array.isArray(right))
    return left.length === right.length && left.every((item, index) => sameData(item, right[index]));
  if (!isPlainObject(left) || !isPlainObject(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && sameData(left[key], right[key]))
  );
}

/**
 * A frozen copy of plain data, which its owner may go on changing. Arrays and plain objects are copied, cycles included;
 * everything else is taken over as it is, and so is what is frozen already.
 */
export function frozenCopy<Value>(value: Value, copies: Map<unknown, unknown> = new Map()): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (!Array.isArray(value) && !isPlainObject(value)) return value;
  const known = copies.get(value);
  if (known !== undefined) return known as Value;
  const copy: object = Array.isArray(value) ? [] : Object.create(Object.getPrototypeOf(value));
  copies.set(value, copy);
  for (const key of Object.keys(value)) {
    const child = frozenCopy(value[key as keyof Value], copies);
    Object.defineProperty(copy, key, { value: child, enumerable: true, configurable: true, writable: true });
  }
  return Object.freeze(copy) as Value;
}

/** Tell whether a value is an object made by a literal or by JSON.parse. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
