/** Values from untyped code, and whether the state accepts them. */

/** Class that no codec supports. */
export class Invoice {
  readonly cents = 100;
}

/** Expected result where any data is accepted: kept unchanged, or refused. */
export type Fate = "kept" | "refused";

/** A value and its fate. Created for each use, because some values can be used only once. */
export interface Garbage {
  readonly make: () => unknown;
  readonly fate: Fate;
}

const kept = (make: () => unknown): Garbage => ({ make, fate: "kept" });
const refused = (make: () => unknown): Garbage => ({ make, fate: "refused" });

/** Values by name, so that a failing test names the value. */
export const garbage: Readonly<Record<string, Garbage>> = {
  "a function": refused(() => () => 1),
  "a class": refused(() => Invoice),
  "a symbol": refused(() => Symbol("s")),
  "a cycle": refused(cycle),
  "a promise inside": refused(() => ({ later: Promise.resolve(1) })),
  "a promise inside that rejects": refused(() => ({ later: Promise.reject(new Error("too late")) })),
  "an instance of a class": refused(() => new Invoice()),
  "a map with a function in it": refused(() => new Map([["f", () => 1]])),
  "a proxy that throws": refused(createHostileProxy),
  "a revoked proxy": refused(createRevokedProxy),
  "a getter that throws": refused(() => ({
    get total(): number {
      throw new Error("the getter threw");
    },
  })),
  "very deep nesting": refused(() => nested(10_000)),
  "an inner thenable that never settles": refused(() => ({ inner: createForeverThenable() })),
  "a symbol as a key": refused(() => ({ [Symbol("key")]: 1 })),
  "a list": kept(() => [1]),
  "a bigint": kept(() => 10n),
  NaN: kept(() => Number.NaN),
  "a date": kept(() => new Date(0)),
  "an object without a prototype": kept(() => Object.assign(Object.create(null), { a: 1 })),
  "a frozen object": kept(() => Object.freeze({ a: Object.freeze({ b: 1 }) })),
  "own keys __proto__ and constructor": kept(() => JSON.parse('{"__proto__":{"polluted":1},"constructor":2}')),
  "a list with holes": kept(() => Object.assign([], { 3: 1 })),
  "a lone surrogate": kept(() => "\ud800"),
  "a huge text": kept(() => "x".repeat(1_000_000)),
  null: kept(() => null),
  "a number": kept(() => 7),
  "a text": kept(() => "text"),
};

class Never {
  // biome-ignore lint/suspicious/noThenProperty: a thenable is what this is.
  readonly then = (): undefined => undefined;
}

/** Object whose `then` never calls back: awaiting it never ends. */
export function createForeverThenable(): object {
  return new Never();
}

/** Proxy that throws on every operation. */
export function createHostileProxy(): object {
  const refuse = (): never => {
    throw new Error("the proxy threw");
  };
  return new Proxy(
    {},
    {
      get: refuse,
      has: refuse,
      ownKeys: refuse,
      getPrototypeOf: refuse,
      getOwnPropertyDescriptor: refuse,
      defineProperty: refuse,
      preventExtensions: refuse,
      isExtensible: refuse,
    },
  );
}

/** Proxy that throws even for Array.isArray. */
export function createRevokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function cycle(): object {
  const round: Record<string, unknown> = {};
  round["self"] = round;
  return round;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = { a: value };
  return value;
}
