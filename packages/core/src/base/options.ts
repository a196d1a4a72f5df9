/** Validates options of untyped callers: unknown names and values of a wrong kind are refused by name. */
import type { EffectClass } from "./effect.ts";
import { type ErrorCode, StatewrightError } from "./errors.ts";
import { invalidOption } from "./invalid-option.ts";

/** Options of `checkOptions`. */
interface CheckOptions {
  readonly code?: Extract<ErrorCode, "invalid_option" | "invalid_tool"> | undefined;
  /** Maps option names of other frameworks to the name to use. */
  readonly replacements?: Readonly<Record<string, string>> | undefined;
}

/** Throws `invalid_option`, or `code`, for options that are not an object and for unknown option names. */
export function checkOptions(
  owner: string,
  options: unknown,
  known: readonly string[],
  { code = "invalid_option", replacements = {} }: CheckOptions = {},
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const fix = `Pass an object with ${known.join(", ")}`;
    throw invalidOption({ where: owner, expected: "options", got: options, fix, code });
  }
  const unknown = Object.keys(options).filter((key) => !known.includes(key));
  if (unknown.length === 0) return;
  const replaceable = unknown.filter((key) => Object.hasOwn(replacements, key));
  const hints = replaceable.map((key) => `${replacements[key]} instead of ${JSON.stringify(key)}`);
  throw new StatewrightError(code, {
    what: `${owner} has no option ${unknown.map((key) => JSON.stringify(key)).join(", ")}`,
    next: replaceable.length === unknown.length ? `Write ${hints.join(", ")}` : `Use ${known.join(", ")}`,
    details: unknown,
  });
}

/** Lists all option names of a type; a missing or extra name does not compile. */
export function listOptionNames<Options>(
  names: { readonly [Name in keyof Required<Options>]: true },
): readonly string[] {
  return Object.keys(names);
}

const effectClasses: readonly unknown[] = ["pure", "idempotent", "once"] satisfies readonly EffectClass[];

/** Throws `invalid_option`, or `code`, for an unknown effect class. */
export function checkEffect(
  owner: string,
  effect: unknown,
  code: Extract<ErrorCode, "invalid_option" | "invalid_tool"> = "invalid_option",
): void {
  if (effect === undefined || effectClasses.includes(effect)) return;
  throw invalidOption({
    where: owner,
    option: "effect",
    expected: "an effect class",
    got: effect,
    fix: 'Use "pure", "idempotent" or "once"',
    code,
  });
}
