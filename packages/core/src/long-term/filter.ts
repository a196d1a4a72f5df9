/**
 * Filters of searches. They are read once, into tests of values: no part of a filter becomes part of a statement of a
 * database, and a field is only ever looked up among a value's own properties.
 */

import { StatewrightError } from "../base/errors.ts";
import { disregardPromises } from "../base/ignore-rejections.ts";
import { describeValue, isPlainObject } from "../base/json.ts";
import type { LongTermCondition, LongTermScalar } from "../base/long-term.ts";
import { optionNames } from "../base/options.ts";

/** Tells of a value whether all conditions hold. */
export type LongTermTest = (value: unknown) => boolean;

/** Read a filter. Throws `invalid_option` for a field or an operator that is none, and for what a field cannot be compared with. */
export function readFilter(filter: unknown): LongTermTest {
  if (!isPlainObject(filter)) throw unfit("the filter", filter, 'conditions by field, such as { kind: "note" }');
  const tests = Object.entries(filter).map(([field, condition]) => {
    const path = readField(field);
    const test = readCondition(field, condition);
    return (value: unknown): boolean => test(fieldOf(value, path));
  });
  return (value) => tests.every((test) => test(value));
}

const fieldGrammar = /^[A-Za-z_][A-Za-z0-9_-]{0,127}$/;
const reserved: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** The parts of a field's name. Throws `invalid_option` for what no field may be called. */
export function readField(field: unknown): readonly string[] {
  const parts = typeof field === "string" ? field.split(".") : [];
  if (parts.length > 0 && parts.every((part) => fieldGrammar.test(part) && !reserved.has(part))) return parts;
  throw unfit("a field", field, "names of letters, digits, _ and -, with dots between, such as address.city");
}

/** The value of a field, by own properties of plain objects alone; `undefined` where there is none. */
export function fieldOf(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const part of path) {
    if (!isPlainObject(found) || !Object.hasOwn(found, part)) return undefined;
    found = found[part];
  }
  return found;
}

type Operator = keyof LongTermCondition;

const operators: { readonly [Name in Operator]: (field: string, wanted: unknown) => LongTermTest } = {
  eq: (field, wanted) => equals(scalar(field, "eq", wanted)),
  ne: (field, wanted) => not(equals(scalar(field, "ne", wanted))),
  gt: (field, wanted) => compares(ordered(field, "gt", wanted), (order) => order > 0),
  gte: (field, wanted) => compares(ordered(field, "gte", wanted), (order) => order >= 0),
  lt: (field, wanted) => compares(ordered(field, "lt", wanted), (order) => order < 0),
  lte: (field, wanted) => compares(ordered(field, "lte", wanted), (order) => order <= 0),
  in: (field, wanted) => {
    if (!Array.isArray(wanted)) throw unfit(`"in" of the field "${field}"`, wanted, "a list of values");
    const tests = wanted.map((each) => equals(scalar(field, "in", each)));
    return (value) => tests.some((test) => test(value));
  },
  has: (field, wanted) => {
    const test = equals(scalar(field, "has", wanted));
    return (value) => Array.isArray(value) && value.some(test);
  },
};

const operatorNames: readonly string[] = optionNames<LongTermCondition>({
  eq: true,
  ne: true,
  gt: true,
  gte: true,
  lt: true,
  lte: true,
  in: true,
  has: true,
});

function readCondition(field: string, condition: unknown): LongTermTest {
  if (isScalar(condition)) return equals(condition);
  if (!isPlainObject(condition) || Object.keys(condition).length === 0)
    throw unfit(`the condition of the field "${field}"`, condition, `a value, or one of ${operatorNames.join(", ")}`);
  const tests = Object.entries(condition).map(([name, wanted]) => {
    if (operatorNames.includes(name)) return operators[name as Operator](field, wanted);
    throw new StatewrightError("invalid_option", {
      what: `the field "${field}" of a filter has no operator ${JSON.stringify(name)}`,
      next: `Use ${operatorNames.join(", ")}; a field inside another is written with a dot`,
    });
  });
  return (value) => tests.every((test) => test(value));
}

function isScalar(value: unknown): value is LongTermScalar {
  return value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
}

function scalar(field: string, operator: Operator, wanted: unknown): LongTermScalar {
  if (isScalar(wanted)) return wanted;
  throw unfit(`"${operator}" of the field "${field}"`, wanted, "a text, a finite number, true, false or null");
}

function ordered(field: string, operator: Operator, wanted: unknown): string | number {
  if (typeof wanted === "string" || (typeof wanted === "number" && Number.isFinite(wanted))) return wanted;
  throw unfit(`"${operator}" of the field "${field}"`, wanted, "a text or a finite number");
}

function equals(wanted: LongTermScalar): LongTermTest {
  return (value) => value === wanted;
}

function not(test: LongTermTest): LongTermTest {
  return (value) => !test(value);
}

/** Texts are compared by their characters, numbers by their size. */
function compares(wanted: string | number, holds: (order: number) => boolean): LongTermTest {
  return (value) => {
    if ((typeof value !== "string" && typeof value !== "number") || typeof value !== typeof wanted) return false;
    return holds(value < wanted ? -1 : value > wanted ? 1 : value === wanted ? 0 : Number.NaN);
  };
}

function unfit(what: string, given: unknown, wanted: string): StatewrightError {
  disregardPromises(given);
  return new StatewrightError("invalid_option", {
    what: `${what} of a search in the long-term store is ${describeValue(given)}`,
    next: `Give ${wanted}`,
  });
}
