/**
 * Cost of a JSON Schema: a small schema can multiply its alternatives over references, and one check of a wrong value
 * would then exhaust the process. The schema is measured when it is loaded, and a recursive schema again per value.
 */
import { isPlainObject, type JsonObject, maxDepth } from "../../base/json.ts";
import type { SchemaIssue } from "../../base/schema.ts";
import { resolveRef } from "./resolve-ref.ts";

/** Maximum characters of a schema as JSON text: 4 Mi. */
const maxSchemaCharacters = 4 * 2 ** 20;

/** Maximum checks of a value by its alternatives, over all references. */
const maxAlternatives = 10_000;

/** Maximum checks of a value and its parts by a recursive schema. */
const maxSteps = 100_000;

/** A check with repeated parts may cost this many times the distinct parts, also above the maximum of steps. */
const maxRepetition = 4;

/** Result of measuring a schema: `problem` for a schema above a limit. */
export interface SchemaCost {
  readonly problem: string | undefined;
  /** Returns an issue for a value whose check would exceed the maximum of steps. */
  readonly findCostIssue: (value: unknown) => SchemaIssue | undefined;
}

const costs: WeakMap<object, SchemaCost> = new WeakMap();

/** Measures the size and depth of a schema, and the product of its combined alternatives over references. */
export function measureSchema(root: JsonObject): SchemaCost {
  const known = costs.get(root);
  if (known !== undefined) return known;
  const cost = measure(root);
  costs.set(root, cost);
  return cost;
}

function measure(root: JsonObject): SchemaCost {
  // The depth first: serialization is recursive.
  const anchors = new Map<string, JsonObject>();
  if (!collectAnchors(root, anchors, 0)) return createRefusal(`is nested deeper than ${maxDepth} levels`);
  const size = JSON.stringify(root).length;
  if (size > maxSchemaCharacters)
    return createRefusal(`has ${size} characters, expected at most ${maxSchemaCharacters}`);
  const resolve = (ref: string): unknown => resolveRef(root, ref) ?? anchors.get(ref) ?? anchors.get(getLastPart(ref));
  const { countAlternatives, isRecursive } = createMeasure(resolve);
  try {
    const alternatives = countAlternatives(root);
    if (alternatives > maxAlternatives)
      return createRefusal(
        `combines more than ${maxAlternatives} alternatives for one value, over anyOf, oneOf, allOf, not and $ref`,
      );
  } catch {
    return createRefusal("has a chain of references that is too long");
  }
  return {
    problem: undefined,
    findCostIssue: isRecursive() ? (value) => findCostIssue(root, value, resolve) : acceptCost,
  };
}

function createRefusal(problem: string): SchemaCost {
  return { problem, findCostIssue: acceptCost };
}

function acceptCost(): undefined {
  return undefined;
}

type Resolve = (ref: string) => unknown;

const combinedLists = ["anyOf", "oneOf", "allOf"];
const combinedSchemas = ["not", "if", "then", "else"];
const referenceKeywords = ["$ref", "$dynamicRef", "$recursiveRef"];

/** Returns the schemas that apply to the same value. */
function listCombined(schema: JsonObject, resolve: Resolve): readonly unknown[] {
  const listed = combinedLists.flatMap((word) => (Array.isArray(schema[word]) ? (schema[word] as unknown[]) : []));
  for (const word of combinedSchemas) if (schema[word] !== undefined) listed.push(schema[word]);
  for (const word of ["dependentSchemas", "dependencies"])
    if (isPlainObject(schema[word])) listed.push(...Object.values(schema[word]));
  for (const word of referenceKeywords) {
    const ref = schema[word];
    if (typeof ref === "string") listed.push(resolve(ref));
  }
  return listed;
}

const partLists = ["prefixItems", "items"];
const partSchemas = [
  ...["items", "additionalItems", "contains", "unevaluatedItems"],
  ...["additionalProperties", "unevaluatedProperties", "propertyNames"],
];
const partMaps = ["properties", "patternProperties"];

/** Returns the schemas that apply to parts of the value. */
function listParts(schema: JsonObject): readonly unknown[] {
  return [
    ...partLists.flatMap((word) => (Array.isArray(schema[word]) ? (schema[word] as unknown[]) : [])),
    ...partSchemas.flatMap((word) => (schema[word] === undefined ? [] : [schema[word]])),
    ...partMaps.flatMap((word) => (isPlainObject(schema[word]) ? Object.values(schema[word]) : [])),
  ];
}

/** Counts how often a value is checked at most: alternatives add up, and parts of a value are counted once. */
function createMeasure(resolve: Resolve) {
  const counts = new Map<object, number>();
  const active = new Set<object>();
  let foundCycle = false;
  const countAlternatives = (schema: unknown): number => {
    if (!isPlainObject(schema)) return 1;
    const known = counts.get(schema);
    if (known !== undefined) return known;
    if (active.has(schema)) {
      foundCycle = true;
      return 1;
    }
    active.add(schema);
    let count = 1;
    for (const part of listParts(schema as JsonObject)) count = Math.max(count, countAlternatives(part));
    for (const combined of listCombined(schema as JsonObject, resolve)) count += countAlternatives(combined);
    active.delete(schema);
    counts.set(schema, count);
    return count;
  };
  return { countAlternatives, isRecursive: () => foundCycle };
}

/** Counts the checks of a value and its parts. Counts of equal pairs of schema and value are kept. */
function findCostIssue(root: JsonObject, value: unknown, resolve: Resolve): SchemaIssue | undefined {
  const counts = new Map<object, Map<unknown, number>>();
  let distinct = 0;
  const count = (schema: unknown, current: unknown, level: number): number => {
    // Repeated alternatives have multiplied beyond the maximum long before this depth.
    if (!isPlainObject(schema) || level > maxDepth) return 1;
    const isContainer = typeof current === "object" && current !== null;
    // The count for a text or a number depends on the schema only.
    const key = isContainer ? current : undefined;
    const known = counts.get(schema) ?? new Map<unknown, number>();
    counts.set(schema, known);
    const found = known.get(key);
    if (found !== undefined) return found;
    // A schema that refers to itself for the same value.
    known.set(key, 1);
    distinct += 1;
    let steps = 1;
    for (const combined of listCombined(schema as JsonObject, resolve)) steps += count(combined, current, level);
    if (Array.isArray(current)) {
      const items = listItemSchemas(schema as JsonObject);
      for (const item of current) for (const part of items) steps += count(part, item, level + 1);
    } else if (isContainer)
      for (const [name, part] of Object.entries(current))
        for (const property of listPropertySchemas(schema as JsonObject, name))
          steps += count(property, part, level + 1);
    known.set(key, steps);
    return steps;
  };
  const issue = { path: "", message: `cannot be checked within ${maxSteps} steps` };
  try {
    const steps = count(root, value, 0);
    return steps > Math.max(maxSteps, maxRepetition * distinct) ? issue : undefined;
  } catch {
    return issue;
  }
}

/** Returns the schemas of an item. With several schemas for places, each counts for each item. */
function listItemSchemas(schema: JsonObject): readonly unknown[] {
  const { prefixItems, items, contains } = schema;
  return [prefixItems, items, contains].flatMap((part) => (part === undefined ? [] : part));
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

/** Collects the schemas by anchor and id. Returns false for a schema that is nested too deeply. */
function collectAnchors(value: unknown, anchors: Map<string, JsonObject>, level: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  if (level > maxDepth) return false;
  if (isPlainObject(value)) {
    for (const word of ["$anchor", "$dynamicAnchor"])
      if (typeof value[word] === "string") anchors.set(`#${value[word]}`, value as JsonObject);
    if (typeof value["$id"] === "string") {
      anchors.set(value["$id"], value as JsonObject);
      anchors.set(getLastPart(value["$id"]), value as JsonObject);
    }
  }
  return Object.values(value).every((part) => collectAnchors(part, anchors, level + 1));
}

function getLastPart(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
}
