/**
 * Cost of a JSON Schema: a small schema can multiply its alternatives over references, and one check of a wrong value
 * would then exhaust the process. The schema is measured when it is loaded. The check of a value is measured too if the
 * schema is recursive, compares long lists, or combines many alternatives or patterns.
 */
import { isPlainObject, type JsonObject, maxDepth } from "../../base/json.ts";
import type { SchemaIssue } from "../../base/schema.ts";
import { countKeys, countListSteps, findCostIssue, maxPatternsPerText, maxStepsPerPart } from "./find-cost-issue.ts";
import { listCombined, type ResolveReference } from "./list-combined.ts";
import { resolveRef } from "./resolve-ref.ts";

/** Maximum characters of a schema as JSON text: 4 Mi. */
const maxSchemaCharacters = 4 * 2 ** 20;

/** Maximum checks of a value by its alternatives, over all references. */
const maxAlternatives = 10_000;

/** Maximum schemas in a schema, with each reference: a validator compiles about a thousand per second. */
const maxSchemas = 5_000;

/** A pattern takes as long to compile as this many schemas. */
const schemasPerPattern = 2;

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
  const measured = createMeasure(resolve);
  let alternatives: number;
  try {
    alternatives = measured.countAlternatives(root);
    if (alternatives > maxAlternatives)
      return createRefusal(
        `combines more than ${maxAlternatives} alternatives for one value, over anyOf, oneOf, allOf, not, patternProperties and $ref`,
      );
  } catch (error) {
    if (error === tooManySchemas) return createRefusal(`has more than ${maxSchemas} schemas`);
    return createRefusal("has a chain of references that is too long");
  }
  return {
    problem: undefined,
    findCostIssue: measured.canExceed(alternatives) ? (value) => findCostIssue(root, value, resolve) : acceptCost,
  };
}

function createRefusal(problem: string): SchemaCost {
  return { problem, findCostIssue: acceptCost };
}

function acceptCost(): undefined {
  return undefined;
}

const tooManySchemas = new Error("too many schemas");

/** Counts how often one part of a value is checked at most. */
function createMeasure(resolve: ResolveReference) {
  const counts = new Map<object, number>();
  const active = new Set<object>();
  let schemas = 0;
  let isRecursive = false;
  let hasPattern = false;
  let hasLongList = false;
  const countAlternatives = (schema: unknown): number => {
    schemas += 1;
    if (schemas > maxSchemas) throw tooManySchemas;
    if (!isPlainObject(schema)) return 1;
    const known = counts.get(schema);
    if (known !== undefined) return known;
    if (active.has(schema)) {
      isRecursive = true;
      return 1;
    }
    active.add(schema);
    const patterns = (schema["pattern"] === undefined ? 0 : 1) + countKeys(schema["patternProperties"]);
    schemas += patterns * schemasPerPattern;
    hasPattern ||= schema["pattern"] !== undefined;
    hasLongList ||= schema["uniqueItems"] === true || countListSteps(schema as JsonObject) > maxStepsPerPart / 2;
    let count = Math.max(1, countPartAlternatives(schema as JsonObject, countAlternatives));
    for (const combined of listCombined(schema as JsonObject, resolve)) count += countAlternatives(combined);
    active.delete(schema);
    counts.set(schema, count);
    return count;
  };
  return {
    countAlternatives,
    /** True when the check of some value may exceed the maximum of steps. */
    canExceed: (alternatives: number): boolean =>
      isRecursive || hasLongList || alternatives > (hasPattern ? maxPatternsPerText : maxStepsPerPart),
  };
}

/** Counts how often a part of the value is checked: schemas that may apply to the same part add up. */
function countPartAlternatives(schema: JsonObject, count: (schema: unknown) => number): number {
  const { properties, patternProperties, prefixItems, items } = schema;
  const named = isPlainObject(properties) ? Object.values(properties) : [];
  const patterns = isPlainObject(patternProperties) ? Object.values(patternProperties) : [];
  const places = [prefixItems, items].flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []));
  const getMaximum = (parts: readonly unknown[]): number => Math.max(0, ...parts.map(count));
  const getSum = (parts: readonly unknown[]): number => parts.reduce<number>((sum, part) => sum + count(part), 0);
  const pick = (words: readonly string[]) =>
    words.flatMap((word) => (schema[word] === undefined ? [] : [schema[word]]));
  const ofProperty =
    getMaximum([...named, ...pick(["additionalProperties"])]) +
    getSum([...patterns, ...pick(["unevaluatedProperties", "propertyNames"])]);
  const ofItem =
    getMaximum([...places, ...(Array.isArray(items) ? [] : pick(["items"])), ...pick(["additionalItems"])]) +
    getSum(pick(["contains", "unevaluatedItems"]));
  return Math.max(ofProperty, ofItem);
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
