/** Validators of middleware and agent options. */
import { StatewrightError } from "@statewright/core";

/** Throws `invalid_option` when an option is set and not an integer ≥ `min`. */
export function checkCount(owner: string, options: Readonly<Record<string, unknown>>, min = 1): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && !(typeof value === "number" && Number.isInteger(value) && value >= min))
      throw invalidOption(owner, option, value, `an integer ≥ ${min}`);
}

/** Throws `invalid_option` when an option is set and not a number of milliseconds > 0. */
export function checkTime(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && !(typeof value === "number" && value > 0 && value < Infinity))
      throw invalidOption(owner, option, value, "a number of milliseconds > 0");
}

/** Throws `invalid_option` when an option is not a boolean. */
export function checkFlag(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options))
    if (typeof value !== "boolean") throw invalidOption(owner, option, value, "true or false");
}

/** Throws `invalid_option` when an option is set and not an array of strings. */
export function checkStrings(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && !(Array.isArray(value) && value.every((each) => typeof each === "string")))
      throw invalidOption(owner, option, value, "a list of strings");
}

/** Throws `invalid_option` when an option is set and not a function. */
export function checkFunction(owner: string, options: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(options))
    if (value !== undefined && typeof value !== "function") throw invalidOption(owner, option, value, "a function");
}

/** Throws `invalid_option` when an option is none of the allowed strings. */
export function checkChoice(
  owner: string,
  options: Readonly<Record<string, unknown>>,
  choices: readonly string[],
): void {
  for (const [option, value] of Object.entries(options))
    if (!choices.some((word) => word === value))
      throw invalidOption(owner, option, value, choices.map((word) => JSON.stringify(word)).join(" or "));
}

/** Throws `invalid_option` when none of the options is set, because the middleware would have no effect. */
export function requireOneOf(owner: string, options: Readonly<Record<string, unknown>>): void {
  if (Object.values(options).some((value) => value !== undefined)) return;
  throw new StatewrightError("invalid_option", {
    what: `${owner}: expected at least one of its options, got none`,
    next: `Set one of ${Object.keys(options).join(", ")}`,
  });
}

/** Creates the `invalid_option` error of an option with an invalid value. */
export function invalidOption(owner: string, option: string, value: unknown, expected: string): StatewrightError {
  const got =
    typeof value === "string" ? JSON.stringify(value) : typeof value === "object" ? describeKind(value) : String(value);
  return new StatewrightError("invalid_option", {
    what: `${owner}: \`${option}\` must be ${expected}, got ${got}`,
    next: `Pass ${expected}`,
  });
}

function describeKind(value: object | null): string {
  return value === null ? "null" : Array.isArray(value) ? "a list" : "an object";
}
