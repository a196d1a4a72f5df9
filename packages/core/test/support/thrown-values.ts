/** Every kind of value that JavaScript can throw. */
import { createHostileProxy } from "./untyped-values.ts";

/** Factories by name, so that a failing test names the value. */
export const thrownThings: Readonly<Record<string, () => unknown>> = {
  null: () => null,
  undefined: () => undefined,
  "a text": () => "plain",
  "a number": () => 42,
  "a bigint": () => 5n,
  "a symbol": () => Symbol("thrown"),
  "a function": () => () => 1,
  "an object": () => ({ status: 500 }),
  "an object that holds itself": () => {
    const round: Record<string, unknown> = {};
    round["self"] = round;
    return round;
  },
  "an error with itself as cause": () => {
    const error = new Error("round");
    error.cause = error;
    return error;
  },
  "an AggregateError": () => new AggregateError([new Error("one"), "two"], "both"),
  "an error with a throwing message": () => throwing(["message"]),
  "an unreadable error": () => throwing(["message", "name", "stack", "cause", "code", "errors"]),
  "a proxy that throws": createHostileProxy,
  "a proxy of an error that throws": () =>
    new Proxy(new Error("inside"), {
      get: () => {
        throw new Error("the proxy threw");
      },
    }),
  "a revoked proxy of an error": () => {
    const { proxy, revoke } = Proxy.revocable(new Error("inside"), {});
    revoke();
    return proxy;
  },
  "an abort of the user's own": () => new DOMException("stopped by hand", "AbortError"),
  "a frozen error": () => Object.freeze(new Error("frozen")),
  "an error with a message of a megabyte": () => new Error("x".repeat(1_000_000)),
  "a chain of 5,000 causes": () => {
    let error = new Error("0");
    for (let depth = 1; depth < 5_000; depth++) error = new Error(String(depth), { cause: error });
    return error;
  },
  "an error with a code": () => Object.assign(new RangeError("far"), { code: "EFAR" }),
};

function throwing(fields: readonly string[]): Error {
  const error = new Error("x");
  for (const field of fields) {
    Object.defineProperty(error, field, {
      get: () => {
        throw new Error(`${field} threw`);
      },
    });
  }
  return error;
}
