/** Options of ready middleware, looked at where they are given. */
import { StatewrightError } from "@statewright/core";

/** Throws `invalid_option` where one of these is given and is no whole number from `least`. */
export function checkCount(owner: string, given: Readonly<Record<string, unknown>>, least = 1): void {
  for (const [option, value] of Object.entries(given))
    if (value !== undefined && !(typeof value === "number" && Number.isInteger(value) && value >= least))
      throw unfitOption(owner, option, value, `a whole number from ${least}`);
}

/** Throws `invalid_option` where one of these is given and is no time above 0. */
export function checkTime(owner: string, given: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(given))
    if (value !== undefined && !(typeof value === "number" && value > 0 && value < Infinity))
      throw unfitOption(owner, option, value, "milliseconds above 0");
}

/** Throws `invalid_option` where one of these is neither true nor false. */
export function checkFlag(owner: string, given: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(given))
    if (typeof value !== "boolean") throw unfitOption(owner, option, value, "true or false");
}

/** Throws `invalid_option` where one of these is given and is no list of texts. */
export function checkTexts(owner: string, given: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(given))
    if (value !== undefined && !(Array.isArray(value) && value.every((each) => typeof each === "string")))
      throw unfitOption(owner, option, value, "a list of texts");
}

/** Throws `invalid_option` where one of these is given and is no function. */
export function checkFunction(owner: string, given: Readonly<Record<string, unknown>>): void {
  for (const [option, value] of Object.entries(given))
    if (value !== undefined && typeof value !== "function") throw unfitOption(owner, option, value, "a function");
}

/** Throws `invalid_option` where one of these is none of the words for it. */
export function checkWord(owner: string, given: Readonly<Record<string, unknown>>, words: readonly string[]): void {
  for (const [option, value] of Object.entries(given))
    if (!words.some((word) => word === value))
      throw unfitOption(owner, option, value, words.map((word) => JSON.stringify(word)).join(" or "));
}

/** Throws `invalid_option` where none of these is given: what was asked for would do nothing. */
export function needOneOf(owner: string, given: Readonly<Record<string, unknown>>): void {
  if (Object.values(given).some((value) => value !== undefined)) return;
  throw new StatewrightError("invalid_option", {
    what: `${owner} has nothing to go by`,
    next: `Give one of ${Object.keys(given).join(", ")}`,
  });
}

/** An option that cannot be what is meant. */
export function unfitOption(owner: string, option: string, given: unknown, wanted: string): StatewrightError {
  const shown =
    typeof given === "string" ? JSON.stringify(given) : typeof given === "object" ? kindOf(given) : String(given);
  return new StatewrightError("invalid_option", { what: `${option} of ${owner} is ${shown}`, next: `Give ${wanted}` });
}

function kindOf(given: object | null): string {
  return given === null ? "null" : Array.isArray(given) ? "a list" : "an object";
}
