/**
 * Filters of searches, parsed once into predicates: no part of a filter becomes part of an SQL statement, and a field
 * is looked up only among a value's own properties.
 */

import type { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";
import type { LongTermCondition, LongTermScalar } from "../base/long-term.ts";
import { listOptionNames } from "../base/options.ts";

/** Predicate of a filter: returns true if all conditions hold for a value. */
export type LongTermPredicate = (value: unknown) => boolean;

/**
 * Parses a filter. Throws `invalid_option` for an invalid field or operator, and for an operand that cannot be
 * compared.
 */
export function parseFilter(filter: unknown): LongTermPredicate {
  if (!isPlainObject(filter))
    throw createInvalidFilterError("the filter", filter, 'conditions by field, such as { kind: "note" }');
  const tests = Object.entries(filter).map(([field, condition]) => {
    const path = parseField(field);
    const test = parseCondition(field, condition);
    return (value: unknown): boolean => test(getField(value, path));
  });
  return (value) => tests.every((test) => test(value));
}

const fieldGrammar = /^[A-Za-z_][A-Za-z0-9_-]{0,127}$/;
const reserved: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Splits a field name into its parts. Throws `invalid_option` for an invalid field name. */
export function parseField(field: unknown): readonly string[] {
  const parts = typeof field === "string" ? field.split(".") : [];
  if (parts.length > 0 && parts.every((part) => fieldGrammar.test(part) && !reserved.has(part))) return parts;
  throw createInvalidFilterError(
    "a field",
    field,
    "names of letters, digits, _ and -, with dots between, such as address.city",
  );
}

/** Returns the value of a field, reading only own properties of plain objects; `undefined` when missing. */
export function getField(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const part of path) {
    if (!isPlainObject(found) || !Object.hasOwn(found, part)) return undefined;
    found = found[part];
  }
  return found;
}

type Operator = keyof LongTermCondition;

const operators: { readonly [Name in Operator]: (field: string, operand: unknown) => LongTermPredicate } = {
  eq: (field, operand) => createEqualityTest(checkScalar(field, "eq", operand)),
  ne: (field, operand) => negateTest(createEqualityTest(checkScalar(field, "ne", operand))),
  gt: (field, operand) => createOrderTest(checkOrderable(field, "gt", operand), (order) => order > 0),
  gte: (field, operand) => createOrderTest(checkOrderable(field, "gte", operand), (order) => order >= 0),
  lt: (field, operand) => createOrderTest(checkOrderable(field, "lt", operand), (order) => order < 0),
  lte: (field, operand) => createOrderTest(checkOrderable(field, "lte", operand), (order) => order <= 0),
  in: (field, operand) => {
    if (!Array.isArray(operand))
      throw createInvalidFilterError(`"in" of field "${field}"`, operand, "a list of values");
    const tests = operand.map((each) => createEqualityTest(checkScalar(field, "in", each)));
    return (value) => tests.some((test) => test(value));
  },
  has: (field, operand) => {
    const test = createEqualityTest(checkScalar(field, "has", operand));
    return (value) => Array.isArray(value) && value.some(test);
  },
};

const operatorNames: readonly string[] = listOptionNames<LongTermCondition>({
  eq: true,
  ne: true,
  gt: true,
  gte: true,
  lt: true,
  lte: true,
  in: true,
  has: true,
});

function parseCondition(field: string, condition: unknown): LongTermPredicate {
  if (isScalar(condition)) return createEqualityTest(condition);
  if (!isPlainObject(condition) || Object.keys(condition).length === 0)
    throw createInvalidFilterError(
      `the condition of field "${field}"`,
      condition,
      `a value, or one of ${operatorNames.join(", ")}`,
    );
  const tests = Object.entries(condition).map(([name, operand]) => {
    if (operatorNames.includes(name)) return operators[name as Operator](field, operand);
    throw invalidOption({
      where: `the condition of field "${field}" of a long-term search`,
      expected: "an operator",
      found: `the unknown operator ${JSON.stringify(name)}`,
      fix: `Use ${operatorNames.join(", ")}; separate the parts of a nested field with dots`,
    });
  });
  return (value) => tests.every((test) => test(value));
}

function isScalar(value: unknown): value is LongTermScalar {
  return value === null || typeof value === "string" || typeof value === "boolean" || Number.isFinite(value);
}

function checkScalar(field: string, operator: Operator, operand: unknown): LongTermScalar {
  if (isScalar(operand)) return operand;
  throw createInvalidFilterError(
    `"${operator}" of field "${field}"`,
    operand,
    "a string, a finite number, true, false or null",
  );
}

function checkOrderable(field: string, operator: Operator, operand: unknown): string | number {
  if (typeof operand === "string" || (typeof operand === "number" && Number.isFinite(operand))) return operand;
  throw createInvalidFilterError(`"${operator}" of field "${field}"`, operand, "a string or a finite number");
}

function createEqualityTest(operand: LongTermScalar): LongTermPredicate {
  return (value) => value === operand;
}

function negateTest(test: LongTermPredicate): LongTermPredicate {
  return (value) => !test(value);
}

/** Compares strings by their characters and numbers by value. */
function createOrderTest(operand: string | number, holds: (order: number) => boolean): LongTermPredicate {
  return (value) => {
    if ((typeof value !== "string" && typeof value !== "number") || typeof value !== typeof operand) return false;
    return holds(value < operand ? -1 : value > operand ? 1 : value === operand ? 0 : Number.NaN);
  };
}

function createInvalidFilterError(part: string, value: unknown, expected: string): StatewrightError {
  return invalidOption({ where: `${part} of a long-term search`, expected, got: value });
}
