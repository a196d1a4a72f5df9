/** Secrets: requested by name and injected as values that do not print or serialize their text. */

import { describeThrown, StatewrightError } from "../../base/errors.ts";
import type { Injection, SecretSource } from "../../base/injection.ts";
import { invalidOption } from "../../base/invalid-option.ts";

/** An injected secret. `reveal()` returns the text; printing and serialization show a placeholder. */
export interface SecretValue {
  /** Returns the secret as text. */
  readonly reveal: () => string;
}

/** Injects the secret `name`. The run fails before the call when the source has no such secret (`missing_secret`). */
export function secret(name: string): Injection<SecretValue> {
  if (typeof name !== "string")
    throw invalidOption({
      where: "secret",
      expected: "the name of a secret",
      found: describeKind(name),
      fix: 'Pass inject.secret("NAME")',
    });
  return {
    kind: "secret",
    resolve: async ({ secrets }) => {
      const value = await getSecret(secrets, name);
      if (typeof value === "string") return createSecretValue(value);
      throw new StatewrightError("missing_secret", {
        what:
          value === undefined
            ? `the secret "${name}" is missing in the run`
            : `the secret source returned ${describeKind(value)} for the secret "${name}"`,
        next: `Pass it as a string, with secrets: env(["${name}"]) or a custom source`,
      });
    },
  };
}

/** Creates a source of the named environment variables only; an unset variable is undefined. */
export function env(names: readonly string[]): SecretSource {
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string"))
    throw invalidOption({
      where: "env",
      expected: "names of secrets",
      found: describeKind(names),
      fix: 'Pass env(["NAME", …])',
    });
  const allowed = new Set(names);
  return { get: (name) => (allowed.has(name) ? getEnvironment()[name] : undefined) };
}

async function getSecret(secrets: SecretSource, name: string): Promise<unknown> {
  try {
    return await secrets.get(name);
  } catch (cause) {
    throw new StatewrightError("missing_secret", {
      what: `the secret source failed on the secret "${name}": ${describeThrown(cause)}`,
      next: "Fix the source, then resume the thread: the call that needs the secret did not start",
      cause,
    });
  }
}

/** Describes the type of a value without its content. */
function describeKind(value: unknown): string {
  return value === null ? "null" : `a value of type ${typeof value}`;
}

function createSecretValue(text: string): SecretValue {
  const hidden = Object.create(null) as SecretValue;
  const getPlaceholder = (): string => "[secret]";
  const methods = {
    reveal: () => text,
    toString: getPlaceholder,
    toJSON: () => undefined,
    [Symbol.toPrimitive]: getPlaceholder,
    [Symbol.for("nodejs.util.inspect.custom")]: getPlaceholder,
  };
  for (const key of Reflect.ownKeys(methods))
    Object.defineProperty(hidden, key, { value: methods[key as keyof typeof methods] });
  return Object.freeze(hidden);
}

function getEnvironment(): Readonly<Record<string, string | undefined>> {
  return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env ?? {};
}
