/** Plain data: the JSON type and deep freezing. */

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json };

type Primitive = string | number | bigint | boolean | symbol | null | undefined;

/** Named like this, because where the platform's types are not loaded a bare `URL` would make `any` of every type below. */
type Link = typeof globalThis extends { readonly URL: { readonly prototype: infer Instance } } ? Instance : never;

/** `Value` with every property, item, entry and member read-only, to any depth. */
export type DeepReadonly<Value> = unknown extends Value
  ? Value
  : Value extends Primitive | ((...args: never[]) => unknown) | Date | RegExp | Link | Error
    ? Value
    : Value extends ReadonlyMap<infer Key, infer Item>
      ? ReadonlyMap<DeepReadonly<Key>, DeepReadonly<Item>>
      : Value extends ReadonlySet<infer Item>
        ? ReadonlySet<DeepReadonly<Item>>
        : Value extends ArrayBufferView
          ? Value
          : { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> };

/** How many levels a value may have. Deeper ones are refused where they would be saved: to walk them takes more stack than there is. */
export const deepestLevel = 500;

/** How much text one value may hold, in characters, where nothing else is said: 64 Mi. A larger one is refused before it is made into text. */
export const largestValue: number = 64 * 2 ** 20;

/** So many levels may have what is saved of a value, which the engine makes around it: it adds a few of its own. */
export const deepestSaved: number = deepestLevel + 20;

/**
 * Freeze a value and all that it holds, entries of maps and sets too. Typed arrays cannot be frozen, and a frozen regular
 * expression cannot match: both stay as they are. What was walked before is not walked again, so that the cost is that of
 * the new parts.
 */
export function deepFreeze<Value>(value: Value): Value {
  freezeFrom(value, 0, { met: 0 });
  return value;
}

/** How many objects a walk has met that were frozen. */
interface FreezeWalk {
  met: number;
}

/** So few are walked again faster than they are remembered: the collector has to look through all that is. */
const fewObjects = 8;

function freezeFrom(value: unknown, level: number, walk: FreezeWalk): void {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || value instanceof RegExp) return;
  if (level > deepestSaved) return;
  const wasFrozen = Object.isFrozen(value);
  if (wasFrozen) {
    // Somebody else's Object.freeze, such as that of a read-only schema, goes one level deep: look inside once.
    walk.met += 1;
    if (walked.has(value)) return;
    if (walk.met > fewObjects) {
      if (!holdsObjects(value)) return;
      walked.add(value);
    }
  } else close(value, level, walk);
  for (const key of Object.keys(value)) freezeFrom(value[key as keyof typeof value], level + 1, walk);
  if (wasFrozen && walk.met > fewObjects) walked.add(value);
}

/** Whether there is anything to walk to: what holds none is looked at again faster than it is remembered. */
function holdsObjects(value: object): boolean {
  for (const key of Object.keys(value)) {
    const inner: unknown = value[key as keyof typeof value];
    if (typeof inner === "object" && inner !== null) return true;
  }
  return false;
}

const walked: WeakSet<object> = new WeakSet();

function close(value: object, level: number, walk: FreezeWalk): void {
  if (value instanceof Map) {
    Object.defineProperties(value, closedMap);
    for (const [key, item] of value) {
      freezeFrom(key, level + 1, walk);
      freezeFrom(item, level + 1, walk);
    }
  } else if (value instanceof Set) {
    Object.defineProperties(value, closedSet);
    for (const item of value) freezeFrom(item, level + 1, walk);
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

/** Tell whether something thrown is the platform's refusal to change a frozen value, or ours for what cannot be frozen. */
export function isFrozenWrite(thrown: unknown): boolean {
  try {
    return thrown instanceof TypeError && /read[- ]?only|not extensible|frozen|delete property/i.test(thrown.message);
  } catch {
    return false;
  }
}

/** Tell whether two values of plain data are equal; other objects are equal only to themselves. */
export function sameData(left: unknown, right: unknown): boolean {
  if (Object.is(left, right)) return true;
  if (Array.isArray(left) && Array.isArray(right)) return sameLists(left, right);
  if (!isPlainObject(left) || !isPlainObject(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && sameData(left[key], right[key]))
  );
}

function sameLists(left: readonly unknown[], right: readonly unknown[]): boolean {
  if (left.length !== right.length) return false;
  for (let index = 0; index < left.length; index++) {
    const item = left[index];
    // A hole is no `undefined`.
    if (!sameData(item, right[index]) || (item === undefined && index in left !== index in right)) return false;
  }
  return true;
}

/**
 * A frozen copy of plain data, which its owner may go on changing. Arrays and plain objects are copied, cycles included;
 * everything else is taken over as it is, and so is what is frozen already.
 */
export function frozenCopy<Value>(value: Value, copies: Map<unknown, unknown> = new Map(), level = 0): Value {
  if (typeof value !== "object" || value === null || level > deepestLevel || Object.isFrozen(value)) return value;
  if (!Array.isArray(value) && !isPlainObject(value)) return value;
  const known = copies.get(value);
  if (known !== undefined) return known as Value;
  const copy: Record<string, unknown> = Array.isArray(value) ? [] : Object.create(Object.getPrototypeOf(value));
  copies.set(value, copy);
  for (const key of Object.keys(value)) {
    const child = frozenCopy(value[key as keyof Value], copies, level + 1);
    if (key === "__proto__")
      Object.defineProperty(copy, key, { value: child, enumerable: true, configurable: true, writable: true });
    else copy[key] = child;
  }
  return Object.freeze(copy) as Value;
}

/** Tell whether a value is an object made by a literal or by JSON.parse. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = prototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** A proxy may refuse to tell: then it is of no kind that is known. */
function prototypeOf(value: object): unknown {
  try {
    return Object.getPrototypeOf(value);
  } catch {
    return undefined;
  }
}

/** Kinds of objects that every codec knows and that hold nothing else. */
const leaves: ReadonlySet<unknown> = new Set([
  Date.prototype,
  RegExp.prototype,
  ArrayBuffer.prototype,
  Uint8Array.prototype,
  Float32Array.prototype,
  Float64Array.prototype,
]);

/**
 * Tell whether a value is plain data all through: no function, no symbol, no class, nothing too deep,
 * so that saving it cannot fail. What is not may still be savable: the codec decides. `above` is how many levels it stands in.
 */
export function isData(value: unknown, above: number = 0): boolean {
  try {
    charactersLeft = largestValue;
    return isDataFrom(value, above);
  } catch {
    // A getter or a proxy threw.
    return false;
  }
}

/** Text of a value that may be left to go through; one walk goes on at a time. */
let charactersLeft = 0;

function isDataFrom(value: unknown, level: number): boolean {
  if (typeof value === "string") {
    charactersLeft -= value.length;
    return charactersLeft >= 0;
  }
  if (typeof value !== "object") return typeof value !== "function" && typeof value !== "symbol";
  if (value === null) return true;
  if (level >= deepestLevel) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) {
    for (const item of value as readonly unknown[]) if (!isDataFrom(item, level + 1)) return false;
    return !isMatch(value);
  }
  if (prototype !== Object.prototype && prototype !== null) {
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) charactersLeft -= value.byteLength;
    return charactersLeft >= 0 && leaves.has(prototype);
  }
  for (const key in value) if (!isDataFrom(value[key as keyof typeof value], level + 1)) return false;
  return Object.getOwnPropertySymbols(value).length === 0;
}

/**
 * Tell whether JSON says a value as it is, with so many characters of text at most: no `undefined`, no `NaN`, no object that
 * is neither a literal's nor a list, no key that the format of saved values takes for its own.
 */
export function isJson(value: unknown, mostCharacters: number = largestValue): boolean {
  try {
    charactersLeft = mostCharacters;
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
  if (level >= deepestLevel) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) {
    const list = value as readonly unknown[];
    for (let index = 0; index < list.length; index++) if (!isJsonFrom(list[index], level + 1)) return false;
    return !isMatch(value);
  }
  if (prototype !== Object.prototype) return false;
  for (const key in value)
    if (key === "$" || key === "toJSON" || !isJsonFrom(value[key as keyof typeof value], level + 1)) return false;
  return Object.getOwnPropertySymbols(value).length === 0;
}

/** Tell whether a list is what `match` and `exec` give: its index, input and groups would be lost with a copy of its items. */
export function isMatch(list: object): boolean {
  return Object.hasOwn(list, "index");
}

/** A value in a few words, for messages: texts and numbers as they are, of everything else the kind. Never throws. */
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
    return "an object that cannot be read";
  }
}
