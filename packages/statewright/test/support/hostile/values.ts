/** Hostile values of every kind, created anew for each call. */

/** Error of a hostile object: it belongs to the caller and passes through unchanged. */
export class OwnError extends Error {}

function throwOwn(): never {
  throw new OwnError("an error of the caller");
}

function createRevoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function createCycle(): object {
  const cycle: Record<string, unknown> = {};
  cycle["a"] = cycle;
  return cycle;
}

export const hostileValues: Readonly<Record<string, () => unknown>> = {
  undefined: () => undefined,
  null: () => null,
  zero: () => 0,
  NaN: () => Number.NaN,
  huge: () => 1e308,
  infinity: () => Number.POSITIVE_INFINITY,
  negative: () => -1,
  "a bigint": () => 10n ** 30n,
  true: () => true,
  "an empty text": () => "",
  "the text __proto__": () => "__proto__",
  "the text constructor": () => "constructor",
  "a long text": () => "x".repeat(5_000),
  "a lone surrogate": () => "\ud800",
  "a text with a NUL": () => "a\u0000b",
  "a path": () => "../../etc",
  "a blank": () => " ",
  SQL: () => "'; DROP TABLE threads; --",
  "a symbol": () => Symbol("s"),
  "a function": () => () => 1,
  "a list": () => [],
  // biome-ignore lint/suspicious/noSparseArray: a hole is a hostile entry
  "a sparse list": () => [, 1],
  "a list of lists": () => [[null]],
  "a list of null": () => [null],
  "a list of symbols": () => [Symbol("x")],
  "an object": () => ({}),
  "an object without prototype": () => Object.create(null),
  "a null-prototype object with a member": () => Object.assign(Object.create(null), { store: null }),
  "an invalid date": () => new Date(Number.NaN),
  "a map": () => new Map(),
  "a set": () => new Set([1]),
  "a regular expression": () => /x/,
  "a promise": () => Promise.resolve(1),
  "an error": () => new Error("e"),
  bytes: () => new Uint8Array(3),
  "a cycle": createCycle,
  "an own __proto__": () => JSON.parse('{"__proto__": {"a": 1}}'),
  // biome-ignore lint/suspicious/noThenProperty: a thenable that is none
  "a then that is a number": () => ({ then: 1 }),
  "a revoked proxy": createRevoked,
  "a getter that throws": () => Object.defineProperty({}, "store", { get: throwOwn, enumerable: true }),
  // biome-ignore lint/suspicious/noThenProperty: a getter of a promise
  "a then that throws": () => Object.defineProperty({}, "then", { get: throwOwn }),
  "an iterator that throws": () => ({ [Symbol.iterator]: throwOwn }),
  "conversions that throw": () => ({
    toString: throwOwn,
    valueOf: throwOwn,
    toJSON: throwOwn,
    [Symbol.toPrimitive]: throwOwn,
  }),
  "a proxy that throws": () =>
    new Proxy({}, { get: throwOwn, has: throwOwn, ownKeys: throwOwn, getOwnPropertyDescriptor: throwOwn }),
  "a callable proxy that throws": () => new Proxy(() => 1, { get: throwOwn, apply: throwOwn }),
};

/** Returns true for an error that a hostile object of the caller threw itself. */
export function isOwnError(thrown: unknown): boolean {
  return thrown instanceof OwnError || (thrown instanceof TypeError && thrown.message.includes("has been revoked"));
}
