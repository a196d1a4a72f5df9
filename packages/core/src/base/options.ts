/** Options as programs without types give them: what nobody knows, or what is of another kind than it must be, is refused by name. */
import type { EffectClass } from "./effect.ts";
import { type ErrorCode, StatewrightError } from "./errors.ts";
import { describeValue } from "./json.ts";

/**
 * Throws `invalid_option`, or another code, for options that are no object, and for a name that they do not have. `meant` says
 * what to write in place of names that people know from elsewhere.
 */
export function checkOptions(
  owner: string,
  given: unknown,
  known: readonly string[],
  code: Extract<ErrorCode, "invalid_option" | "invalid_tool"> = "invalid_option",
  meant: Readonly<Record<string, string>> = {},
): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new StatewrightError(code, {
      what: `${owner} got ${describeValue(given)} where its options are due`,
      next: `Give an object with ${known.join(", ")}`,
    });
  }
  const unknown = Object.keys(given).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  const named = unknown.filter((key) => Object.hasOwn(meant, key));
  const instead = named.map((key) => `${meant[key]} in place of ${JSON.stringify(key)}`);
  throw new StatewrightError(code, {
    what: `${owner} has no option ${unknown.map((key) => JSON.stringify(key)).join(", ")}`,
    next: named.length === unknown.length ? `Write ${instead.join(", ")}` : `Use ${known.join(", ")}`,
    details: unknown,
  });
}

/** The names of all options of a type: one that is added there and not here does not compile. */
export function optionNames<Options>(names: { readonly [Name in keyof Required<Options>]: true }): readonly string[] {
  return Object.keys(names);
}

const effects: readonly unknown[] = ["pure", "idempotent", "once"] satisfies readonly EffectClass[];

/** Throws `invalid_option`, or another code, for an effect class that there is not. */
export function checkEffect(
  owner: string,
  effect: unknown,
  code: Extract<ErrorCode, "invalid_option" | "invalid_tool"> = "invalid_option",
): void {
  if (effect === undefined || effects.includes(effect)) return;
  throw new StatewrightError(code, {
    what: `the effect of ${owner} is ${describeValue(effect)}`,
    next: 'Give "pure", "idempotent" or "once"',
  });
}
