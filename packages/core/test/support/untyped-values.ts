/** Values from untyped code, and whether the state accepts them. */

/** Class that no codec supports. */
export class Invoice {
  readonly cents = 100;
}

/** Expected result where any data is accepted: kept unchanged, or refused. */
export type Expectation = "accepted" | "refused";

/** A value and its fate. Created for each use, because some values can be used only once. */
export interface Garbage {
  readonly make: () => unknown;
  readonly expectation: Expectation;
}

const createAccepted = (make: () => unknown): Garbage => ({ make, expectation: "accepted" });
const createRefused = (make: () => unknown): Garbage => ({ make, expectation: "refused" });

/** Values by name, so that a failing test names the value. */
export const garbage: Readonly<Record<string, Garbage>> = {
  "a function": createRefused(() => () => 1),
  "a class": createRefused(() => Invoice),
  "a symbol": createRefused(() => Symbol("s")),
  "a cycle": createRefused(cycle),
  "a promise inside": createRefused(() => ({ later: Promise.resolve(1) })),
  "a promise inside that rejects": createRefused(() => ({ later: Promise.reject(new Error("too late")) })),
  "an instance of a class": createRefused(() => new Invoice()),
  "a map with a function in it": createRefused(() => new Map([["f", () => 1]])),
  "a proxy that throws": createRefused(createHostileProxy),
  "a revoked proxy": createRefused(createRevokedProxy),
  "a getter that throws": createRefused(() => ({
    get total(): number {
      throw new Error("the getter threw");
    },
  })),
  "very deep nesting": createRefused(() => nested(10_000)),
  "an inner thenable that never settles": createRefused(() => ({ inner: createForeverThenable() })),
  "a symbol as a key": createRefused(() => ({ [Symbol("key")]: 1 })),
  "a list": createAccepted(() => [1]),
  "a bigint": createAccepted(() => 10n),
  NaN: createAccepted(() => Number.NaN),
  "a date": createAccepted(() => new Date(0)),
  "an object without a prototype": createAccepted(() => Object.assign(Object.create(null), { a: 1 })),
  "a frozen object": createAccepted(() => Object.freeze({ a: Object.freeze({ b: 1 }) })),
  "own keys __proto__ and constructor": createAccepted(() =>
    JSON.parse('{"__proto__":{"polluted":1},"constructor":2}'),
  ),
  "a list with holes": createAccepted(() => Object.assign([], { 3: 1 })),
  "a lone surrogate": createAccepted(() => "\ud800"),
  "a huge text": createAccepted(() => "x".repeat(1_000_000)),
  null: createAccepted(() => null),
  "a number": createAccepted(() => 7),
  "a text": createAccepted(() => "text"),
};

class Never {
  // biome-ignore lint/suspicious/noThenProperty: the test needs a thenable.
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
