/**
 * Checks options of untyped callers: unknown names, effect classes, counts, times, flags, strings, functions and
 * choices. Each error names the option and the expected value.
 */
import type { EffectClass } from "./effect.ts";
import { type ErrorCode, StatewrightError } from "./errors.ts";
import { invalidOption } from "./invalid-option.ts";
import { describeValue } from "./json.ts";

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
  names: { readonly [Name in keyof Required<Options> & string]: true },
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

/** Throws `invalid_option` when an option is set and not an integer from `min` to `max`. */
export function checkCount(
  owner: string,
  options: Readonly<Record<string, unknown>>,
  min = 1,
  max: number = Number.POSITIVE_INFINITY,
): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && !(Number.isInteger(value) && isInRange(value, min, max)))
      throw invalidOption({ where: owner, option, expected: describeRange("an integer", min, max), got: value });
}

/** Throws `invalid_option` when an option is set and not a number from `min` to `max`. */
export function checkNumber(
  owner: string,
  options: Readonly<Record<string, unknown>>,
  min: number,
  max: number = Number.POSITIVE_INFINITY,
): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && !isInRange(value, min, max))
      throw invalidOption({ where: owner, option, expected: describeRange("a number", min, max), got: value });
}

function isInRange(value: unknown, min: number, max: number): boolean {
  return typeof value === "number" && value >= min && value <= max;
}

function describeRange(kind: string, min: number, max: number): string {
  return max === Number.POSITIVE_INFINITY ? `${kind} ≥ ${min}` : `${kind} from ${min} to ${max}`;
}

/** Time of the latest `Date`, in milliseconds since the epoch: a store holds every time up to this one exactly. */
export const latestTime = 8.64e15;

/** Throws `invalid_option` when an option is set and not a time after the epoch that a `Date` can hold. */
export function checkTimestamp(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && !(typeof value === "number" && value > 0 && value <= latestTime))
      throw invalidOption({
        ...{ where: owner, option, expected: "milliseconds since the epoch, at most those of a Date", got: value },
      });
}

/** Throws `invalid_option` when an option is set and not a number of milliseconds > 0. */
export function checkTime(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && !(typeof value === "number" && value > 0 && value < Infinity))
      throw invalidOption({ where: owner, option, expected: "a number of milliseconds > 0", got: value });
}

/** Throws `invalid_option` when an option is set, and neither a date nor milliseconds since the epoch. */
export function checkDate(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options)) {
    const ms = value instanceof Date ? value.getTime() : value;
    if (ms === undefined || (typeof ms === "number" && ms >= -latestTime && ms <= latestTime)) continue;
    const found = value instanceof Date ? "an invalid date" : describeValue(value);
    throw invalidOption({ where: owner, option, expected: "a date, or milliseconds since the epoch", found });
  }
}

/** Prints a time of a message: as a date, and as a number outside of the range of dates. */
export function toTimeText(ms: number): string {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString();
}

/** Throws `invalid_option` when an option is not a boolean. */
export function checkFlag(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options))
    if (typeof value !== "boolean")
      throw invalidOption({ where: owner, option, expected: "true or false", got: value });
}

/** Throws `invalid_option` when an option is set and not an array of strings. */
export function checkStrings(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && !(Array.isArray(value) && value.every((each) => typeof each === "string")))
      throw invalidOption({ where: owner, option, expected: "a list of strings", got: value });
}

/** Throws `invalid_option` when an option is set and not a function. */
export function checkFunction(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && typeof value !== "function")
      throw invalidOption({ where: owner, option, expected: "a function", got: value });
}

/** Throws `invalid_option` when an option is none of the allowed strings. */
export function checkChoice(
  owner: string,
  options: Readonly<Record<string, unknown>>,
  choices: readonly string[],
): void {
  for (const [option, value] of Object.entries(options))
    if (!choices.some((word) => word === value))
      throw invalidOption({
        where: owner,
        option,
        expected: choices.map((word) => JSON.stringify(word)).join(" or "),
        got: value,
      });
}

/** Throws `invalid_option` when none of the options is set, because the middleware would have no effect. */
export function requireAny(owner: string, options: Readonly<Record<string, unknown>>): void {
  if (Object.values(options).some((value) => value !== undefined)) return;
  throw invalidOption({
    where: owner,
    expected: "at least one of its options",
    found: "none",
    fix: `Set one of ${Object.keys(options).join(", ")}`,
  });
}
