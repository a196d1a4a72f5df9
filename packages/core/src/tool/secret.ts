/** Secrets: given by name, handed to tools as values that print and serialise as nothing. */
import { StatewrightError } from "../base/errors.ts";
import type { Injection, SecretSource } from "../base/injection.ts";

/** A secret in a tool's hands; `reveal()` gives the text, every other way of looking at it shows nothing. */
export interface SecretValue {
  readonly reveal: () => string;
}

/** Inject the secret `name`; the run fails before the call when its source does not have it (`missing_secret`). */
export function secret(name: string): Injection<SecretValue> {
  return {
    kind: "secret",
    resolve: async ({ secrets }) => {
      const value = await secrets.get(name);
      if (value !== undefined) return hide(value);
      throw new StatewrightError("missing_secret", {
        what: `the secret "${name}" is not among those given to the run`,
        next: `Pass it with secrets: env(["${name}"]) or a source of your own`,
      });
    },
  };
}

/** A source of the named environment variables and no others; a variable that is unset is missing when it is asked for. */
export function env(names: readonly string[]): SecretSource {
  const allowed = new Set(names);
  return { get: (name) => (allowed.has(name) ? environment()[name] : undefined) };
}

function hide(text: string): SecretValue {
  const hidden = Object.create(null) as SecretValue;
  const blank = (): string => "[secret]";
  const methods = {
    reveal: () => text,
    toString: blank,
    toJSON: () => undefined,
    [Symbol.toPrimitive]: blank,
    [Symbol.for("nodejs.util.inspect.custom")]: blank,
  };
  for (const key of Reflect.ownKeys(methods))
    Object.defineProperty(hidden, key, { value: methods[key as keyof typeof methods] });
  return Object.freeze(hidden);
}

function environment(): Readonly<Record<string, string | undefined>> {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};
}
