/** Cost of the check of one value by a JSON Schema: the steps that a validator takes. */
import { isPlainObject, type JsonObject, maxDepth } from "../../base/json.ts";
import type { SchemaIssue } from "../../base/schema.ts";
import { listCombined, type ResolveReference } from "./list-combined.ts";

/** Maximum steps of the check of a value. */
const maxSteps = 100_000;

/** The check of a large value may take this many steps for each of its parts. */
export const maxStepsPerPart = 32;

/** Characters of a text that count as a part of the value. */
const charactersPerPart = 32;

/** Characters of a text that a pattern matches in one step. */
const charactersPerStep = 4;

/** Patterns that may match each text of a value without exceeding the steps for its parts. */
export const maxPatternsPerText: number = (maxStepsPerPart * charactersPerStep) / charactersPerPart;

/** Comparisons of a value with the entries of an enumeration, or of two items, that take one step. */
const comparisonsPerStep = 16;

/** Returns an issue for a value whose check would exceed the maximum of steps. */
export function findCostIssue(root: JsonObject, value: unknown, resolve: ResolveReference): SchemaIssue | undefined {
  const limit = Math.max(maxSteps, maxStepsPerPart * countParts(value, 0));
  const issue = { path: "", message: `cannot be checked within ${limit} steps` };
  try {
    return createCounter(resolve, limit)(root, value, 0) > limit ? issue : undefined;
  } catch {
    return issue;
  }
}

/** Counts the parts of a value. */
function countParts(value: unknown, level: number): number {
  if (typeof value === "string") return 1 + value.length / charactersPerPart;
  if (typeof value !== "object" || value === null || level > maxDepth) return 1;
  let parts = 1;
  for (const part of Object.values(value)) parts += countParts(part, level + 1);
  return parts;
}

/**
 * Counts the steps of the check of a value and its parts. Counts of equal pairs of schema and value are kept. Throws
 * when the counting itself exceeds the limit.
 */
function createCounter(resolve: ResolveReference, limit: number) {
  const counts = new Map<object, Map<unknown, number>>();
  let counted = 0;
  const count = (schema: unknown, current: unknown, level: number): number => {
    counted += 1;
    if (counted > limit) throw new RangeError("too many steps");
    // Repeated alternatives have multiplied beyond the maximum long before this depth.
    if (!isPlainObject(schema) || level > maxDepth) return 1;
    const known = counts.get(schema) ?? new Map<unknown, number>();
    counts.set(schema, known);
    const key = getCountKey(current);
    const found = known.get(key);
    if (found !== undefined) return found;
    // A schema that refers to itself for the same value.
    known.set(key, 1);
    let steps = 1 + countOwnSteps(schema as JsonObject, current);
    for (const combined of listCombined(schema as JsonObject, resolve)) steps += count(combined, current, level);
    if (Array.isArray(current)) {
      const items = listItemSchemas(schema as JsonObject);
      for (const item of current) for (const part of items) steps += count(part, item, level + 1);
    } else if (typeof current === "object" && current !== null) {
      const properties = Object.entries(current);
      if (countKeys(schema["patternProperties"]) * properties.length > limit) throw new RangeError("too many steps");
      for (const [name, part] of properties) {
        if (schema["propertyNames"] !== undefined) steps += count(schema["propertyNames"], name, level + 1);
        for (const property of listPropertySchemas(schema as JsonObject, name))
          steps += count(property, part, level + 1);
      }
    }
    known.set(key, steps);
    return steps;
  };
  return count;
}

/** Counts the properties of an object; 0 for another value. */
export function countKeys(value: unknown): number {
  return isPlainObject(value) ? Object.keys(value).length : 0;
}

/** Returns the key of a value's count. The counts of numbers and short texts depend on the schema only. */
function getCountKey(value: unknown): unknown {
  if (typeof value === "string") return value.length > charactersPerPart ? value : undefined;
  return typeof value === "object" && value !== null ? value : undefined;
}

/** Counts the steps of the keywords of one schema that compare entries, items or characters. */
function countOwnSteps(schema: JsonObject, value: unknown): number {
  if (typeof value === "string" && schema["pattern"] !== undefined)
    return countListSteps(schema) + value.length / charactersPerStep;
  if (Array.isArray(value) && schema["uniqueItems"] === true && !hasScalarItems(schema))
    return countListSteps(schema) + (value.length * (value.length - 1)) / 2 / comparisonsPerStep;
  return countListSteps(schema);
}

/** Counts the steps of the comparison with an enumeration. */
export function countListSteps(schema: JsonObject): number {
  const entries = Array.isArray(schema["enum"]) ? schema["enum"].length : 0;
  return Math.floor(entries / comparisonsPerStep);
}

/** True for items of scalar types, which validators compare by a table. */
function hasScalarItems({ items }: JsonObject): boolean {
  if (!isPlainObject(items) || items["type"] === undefined) return false;
  const types: readonly unknown[] = [items["type"]].flat();
  return !types.includes("object") && !types.includes("array");
}

/** Returns the schemas of an item. With several schemas for places, each counts for each item. */
function listItemSchemas(schema: JsonObject): readonly unknown[] {
  const { prefixItems, items, additionalItems, contains, unevaluatedItems } = schema;
  const parts: readonly unknown[] = [prefixItems, items, additionalItems, contains, unevaluatedItems];
  return parts.flatMap((part) => (part === undefined ? [] : part));
}

/** Returns the schemas that may apply to the property of this name. */
function listPropertySchemas(schema: JsonObject, name: string): readonly unknown[] {
  const { properties, patternProperties, additionalProperties, unevaluatedProperties } = schema;
  const isNamed = isPlainObject(properties) && Object.hasOwn(properties, name);
  return [
    ...(isNamed ? [properties[name]] : []),
    ...(isPlainObject(patternProperties) ? Object.values(patternProperties) : []),
    ...(isNamed || additionalProperties === undefined ? [] : [additionalProperties]),
    ...(unevaluatedProperties === undefined ? [] : [unevaluatedProperties]),
  ];
}
