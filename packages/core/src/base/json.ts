/** JSON types, plain-data checks and deep freezing. */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

type Primitive = string | number | bigint | boolean | symbol | null | undefined;

/**
 * Alias of the platform's `URL` instance: without the platform's types, a bare `URL` would turn the types below into
 * `any`.
 */
type UrlInstance = typeof globalThis extends { readonly URL: { readonly prototype: infer Instance } }
  ? Instance
  : never;

type MutableJson = null | boolean | number | string | MutableJson[] | { [key: string]: MutableJson };

/**
 * `Value` with read-only properties, items, entries and members at any depth. A value that includes all of JSON becomes
 * {@link Json}: the compiler would not end the recursion through the items of its arrays.
 */
export type DeepReadonly<Value> = unknown extends Value
  ? Value
  : [MutableJson] extends [Value]
    ? Json | DeepReadonly<Exclude<Value, Json>>
    : DeepReadonlyPart<Value>;

type DeepReadonlyPart<Value> = Value extends
  | Primitive
  | ((...args: never[]) => unknown)
  | Date
  | RegExp
  | UrlInstance
  | Error
  ? Value
  : Value extends ReadonlyMap<infer Key, infer Item>
    ? ReadonlyMap<DeepReadonly<Key>, DeepReadonly<Item>>
    : Value extends ReadonlySet<infer Item>
      ? ReadonlySet<DeepReadonly<Item>>
      : Value extends ArrayBufferView
        ? Value
        : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

/**
 * Maximum nesting levels of a value. Deeper values are refused before a save, because their traversal overflows the
 * stack.
 */
export const maxDepth = 500;

/** Default maximum of text in a value: 64 Mi characters. Larger values are refused before serialization. */
export const maxValueCharacters: number = 64 * 2 ** 20;

/** Maximum nesting levels of a saved value: the engine wraps the value in a few levels of its own. */
export const maxSavedDepth: number = maxDepth + 20;

/**
 * Freezes a value deeply, including entries of maps and sets. Typed arrays cannot be frozen and a frozen regular
 * expression cannot match, so both stay unchanged. Objects of an earlier traversal are skipped: the cost is
 * proportional to the new parts.
 */
export function deepFreeze<Value>(value: Value): Value {
  freezeNested(value, 0, { frozenCount: 0 });
  return value;
}

/** Count of already frozen objects in the current traversal. */
interface FreezeTraversal {
  frozenCount: number;
}

/**
 * Number of frozen objects that are traversed without being memoized: a WeakSet entry costs more in garbage
 * collection.
 */
const maxUnmemoized = 8;

function freezeNested(value: unknown, level: number, traversal: FreezeTraversal): void {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || value instanceof RegExp) return;
  if (level > maxSavedDepth) return;
  const wasFrozen = Object.isFrozen(value);
  if (wasFrozen) {
    // Another `Object.freeze`, such as a read-only schema's, is shallow: traverse the contents once.
    traversal.frozenCount += 1;
    if (traversed.has(value)) return;
    if (traversal.frozenCount > maxUnmemoized) {
      if (!hasObjects(value)) return;
      traversed.add(value);
    }
  } else freezeContainer(value, level, traversal);
  freezeProperties(value, level, traversal);
  if (wasFrozen && traversal.frozenCount > maxUnmemoized) traversed.add(value);
}

function freezeProperties(value: object, level: number, traversal: FreezeTraversal): void {
  if (isPlainObject(value)) {
    // `for in` allocates no list of keys. A plain object inherits no enumerable key.
    for (const key in value) freezeNested(value[key], level + 1, traversal);
    return;
  }
  for (const key of Object.keys(value)) freezeNested(value[key as keyof typeof value], level + 1, traversal);
}

/**
 * Returns true if a property contains an object. An object without nested objects is cheaper to inspect again than to
 * memoize.
 */
function hasObjects(value: object): boolean {
  for (const key of Object.keys(value)) {
    const inner: unknown = value[key as keyof typeof value];
    if (typeof inner === "object" && inner !== null) return true;
  }
  return false;
}

const traversed: WeakSet<object> = new WeakSet();

function freezeContainer(value: object, level: number, traversal: FreezeTraversal): void {
  if (value instanceof Map) {
    Object.defineProperties(value, mapOverrides);
    for (const [key, item] of value) {
      freezeNested(key, level + 1, traversal);
      freezeNested(item, level + 1, traversal);
    }
  } else if (value instanceof Set) {
    Object.defineProperties(value, setOverrides);
    for (const item of value) freezeNested(item, level + 1, traversal);
  } else if (value instanceof Date) Object.defineProperties(value, dateOverrides);
  Object.freeze(value);
}

/** Overrides of mutating methods: `Object.freeze` does not protect the internal slots of maps, sets and dates. */
const mapOverrides: PropertyDescriptorMap = createOverrides(["set", "delete", "clear"]);
const setOverrides: PropertyDescriptorMap = createOverrides(["add", "delete", "clear"]);
const dateOverrides: PropertyDescriptorMap = createOverrides(
  Object.getOwnPropertyNames(Date.prototype).filter((name) => name.startsWith("set")),
);

function createOverrides(methods: readonly string[]): PropertyDescriptorMap {
  return Object.fromEntries(methods.map((name) => [name, { value: refuseChange }]));
}

function refuseChange(): never {
  throw new TypeError("Cannot change a frozen value. Create a new value");
}

/**
 * Returns true if a thrown value is an attempt to change a frozen value: the platform's TypeError or the one of
 * `refuseChange`.
 */
export function isFrozenWrite(thrown: unknown): boolean {
  try {
    return thrown instanceof TypeError && /read[- ]?only|not extensible|frozen|delete property/i.test(thrown.message);
  } catch {
    return false;
  }
}

/** Compares plain data by value and other objects by identity. */
export function isSameData(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (Array.isArray(left) && Array.isArray(right)) return isSameList(left, right);
  if (!isPlainObject(left) || !isPlainObject(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && isSameData(left[key], right[key]))
  );
}

function isSameList(left: readonly unknown[], right: readonly unknown[]): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index++) {
    const item = left[index];
    // A hole in an array differs from `undefined`.
    if (!isSameData(item, right[index]) || (item === undefined && index in left !== index in right)) return false;
  }
  return true;
}

/**
 * Returns a frozen copy of plain data; the original stays mutable. Arrays and plain objects are copied, cycles
 * included. Other values and frozen values are reused.
 */
export function createFrozenCopy<Value>(value: Value, copies: Map<unknown, unknown> = new Map(), level = 0): Value {
  if (typeof value !== "object" || value === null || level > maxDepth || Object.isFrozen(value)) return value;
  if (!Array.isArray(value) && !isPlainObject(value)) return value;
  const known = copies.get(value);
  if (known !== undefined) return known as Value;
  const copy: Record<string, unknown> = Array.isArray(value) ? [] : Object.create(Object.getPrototypeOf(value));
  copies.set(value, copy);
  for (const key of Object.keys(value)) {
    const child = createFrozenCopy(value[key as keyof Value], copies, level + 1);
    if (key === "__proto__")
      Object.defineProperty(copy, key, { value: child, enumerable: true, configurable: true, writable: true });
    else copy[key] = child;
  }
  return Object.freeze(copy) as Value;
}

/** Returns true if a value is an object literal or a result of JSON.parse. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = getPrototype(value);
  return prototype === Object.prototype || prototype === null;
}

/** Returns undefined when a proxy throws. */
function getPrototype(value: object): unknown {
  try {
    return Object.getPrototypeOf(value);
  } catch {
    return undefined;
  }
}

/** Prototypes of leaf objects that every codec supports. */
const leafPrototypes: ReadonlySet<unknown> = new Set([
  Date.prototype,
  RegExp.prototype,
  ArrayBuffer.prototype,
  Uint8Array.prototype,
  Float32Array.prototype,
  Float64Array.prototype,
]);

/**
 * Returns true if a value is plain data at every level: no function, symbol or class instance, within the depth
 * limit, so that a save cannot fail. Other values may still be savable by a codec. `above` is the number of enclosing
 * levels.
 */
export function isData(value: unknown, depth: number = 0): boolean {
  try {
    charactersLeft = maxValueCharacters;
    return isDataFrom(value, depth);
  } catch {
    // A getter or a proxy threw.
    return false;
  }
}

/** Remaining characters of the current traversal. Module state: traversals are synchronous and do not nest. */
let charactersLeft = 0;

function isDataFrom(value: unknown, level: number): boolean {
  if (typeof value === "string") {
    charactersLeft -= value.length;
    return charactersLeft >= 0;
  }
  if (typeof value !== "object") return typeof value !== "function" && typeof value !== "symbol";
  if (value === null) return true;
  if (level >= maxDepth) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) {
    const items = value as readonly unknown[];
    // An index allocates no iterator.
    for (let index = 0; index < items.length; index++) if (!isDataFrom(items[index], level + 1)) return false;
    return !isRegExpMatch(value);
  }
  if (prototype !== Object.prototype && prototype !== null) {
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) charactersLeft -= value.byteLength;
    return charactersLeft >= 0 && leafPrototypes.has(prototype);
  }
  for (const key in value) if (!isDataFrom(value[key as keyof typeof value], level + 1)) return false;
  return Object.getOwnPropertySymbols(value).length === 0;
}

/**
 * Returns true if JSON represents a value exactly, within the given characters of text. Rejects `undefined`, `NaN`,
 * class instances, and keys reserved by the save format.
 */
export function isJson(value: unknown, maxCharacters: number = maxValueCharacters): boolean {
  try {
    charactersLeft = maxCharacters;
    return isJsonFrom(value, 0);
  } catch {
    // A getter or a proxy threw.
    return false;
  }
}

function isJsonFrom(value: unknown, level: number): boolean {
  if (typeof value === "string") {
    charactersLeft -= value.length;
    return charactersLeft >= 0;
  }
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
  if (typeof value !== "object") return typeof value === "boolean";
  if (value === null) return true;
  if (level >= maxDepth) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) {
    const list = value as readonly unknown[];
    for (let index = 0; index < list.length; index++) if (!isJsonFrom(list[index], level + 1)) return false;
    return !isRegExpMatch(value);
  }
  if (prototype !== Object.prototype) return false;
  for (const key in value)
    if (key === "$" || key === "toJSON" || !isJsonFrom(value[key as keyof typeof value], level + 1)) return false;
  return Object.getOwnPropertySymbols(value).length === 0;
}

/** Returns true for the result of `match` or `exec`: a copy of its items would lose index, input and groups. */
export function isRegExpMatch(list: object): boolean {
  return Object.hasOwn(list, "index");
}

/**
 * Describes a value for messages: strings and numbers verbatim (up to 200 characters), other values by kind.
 * Contract: never throws.
 */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 200 ? `${value.slice(0, 200)}…` : value);
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  try {
    if (value instanceof Promise) return "a promise";
    if (Array.isArray(value)) return "a list";
    if (isPlainObject(value)) return "an object";
    return `an instance of ${value.constructor?.name ?? "an unnamed class"}`;
  } catch {
    return "an unreadable object";
  }
}
