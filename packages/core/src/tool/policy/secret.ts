/** Secrets: given by name, handed to tools as values that print and serialise as nothing. */
import { describeThrown, StatewrightError } from "../../base/errors.ts";
import type { Injection, SecretSource } from "../../base/injection.ts";

/** A secret in a tool's hands; `reveal()` gives the text, every other way of looking at it shows nothing. */
export interface SecretValue {
  readonly reveal: () => string;
}

/** Inject the secret `name`; the run fails before the call when its source does not have it (`missing_secret`). */
export function secret(name: string): Injection<SecretValue> {
  if (typeof name !== "string") throw unnamed("secret", name, 'secret("NAME")');
  return {
    kind: "secret",
    resolve: async ({ secrets }) => {
      const value = await asked(secrets, name);
      if (typeof value === "string") return hide(value);
      throw new StatewrightError("missing_secret", {
        what:
          value === undefined
            ? `the secret "${name}" is not among those given to the run`
            : `the source of secrets gave ${describeKind(value)} for the secret "${name}"`,
        next: `Pass it as a text, with secrets: env(["${name}"]) or a source of your own`,
      });
    },
  };
}

/** A source of the named environment variables and no others; a variable that is unset is missing when it is asked for. */
export function env(names: readonly string[]): SecretSource {
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string"))
    throw unnamed("env", names, 'env(["NAME", …])');
  const allowed = new Set(names);
  return { get: (name) => (allowed.has(name) ? environment()[name] : undefined) };
}

function unnamed(what: string, given: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `${what} got ${describeKind(given)} where names of secrets are due`,
    next: `Give ${wanted}`,
  });
}

async function asked(secrets: SecretSource, name: string): Promise<unknown> {
  try {
    return await secrets.get(name);
  } catch (cause) {
    throw new StatewrightError("missing_secret", {
      what: `the source of secrets failed on the secret "${name}": ${describeThrown(cause)}`,
      next: "Mend the source, then resume the thread: the call that needs the secret was not made",
      cause,
    });
  }
}

/** What kind of value it is: no part of it is shown. */
function describeKind(value: unknown): string {
  return value === null ? "null" : `a value of the type ${typeof value}`;
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
