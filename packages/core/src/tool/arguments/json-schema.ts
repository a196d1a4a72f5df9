/**
 * JSON Schema of tool arguments. Schemas are enforced exactly or refused: an unknown keyword requires a custom
 * validator, because ignoring a keyword would accept values that the schema forbids.
 */

import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze, describeValue, isPlainObject, isSameData, type JsonObject, maxDepth } from "../../base/json.ts";
import { checkFunction, checkOptions } from "../../base/options.ts";
import type { SchemaIssue } from "../../base/schema.ts";
import { resolveRef } from "./resolve-ref.ts";
import { measureSchema } from "./schema-cost.ts";

/**
 * Compiles a JSON Schema to a function that returns the issues of a value; an empty list for a valid value. Fits an
 * ajv adapter.
 */
export type JsonSchemaValidator = (schema: JsonObject) => (value: unknown) => readonly SchemaIssue[];

/**
 * Arguments described by a JSON Schema, which is sent to the model unchanged. `validate` returns the issues of a
 * value.
 */
export interface JsonSchemaInput<Args = unknown> {
  readonly jsonSchema: JsonObject;
  /** Returns the issues of a value; an empty list for a valid value. */
  readonly validate: (value: unknown) => readonly SchemaIssue[];
  /** Type-level only: argument type of the tool. */
  readonly types?: { readonly args: Args };
}

/**
 * Creates tool arguments from a JSON Schema of an object. The schema is enforced by `validator`, or by the built-in
 * checker, which supports types, `enum`, `const`, `properties`, `required`, lists, bounds, patterns, `anyOf`,
 * `oneOf`, `allOf`, `not` and local `$ref`. Throws `invalid_tool` for other keywords, for invalid schemas, and for a
 * schema whose size, depth or combined alternatives exceed a limit.
 */
export function jsonSchemaInput<Args = Readonly<Record<string, unknown>>>(
  schema: object,
  options: { readonly validator?: JsonSchemaValidator } = {},
): JsonSchemaInput<Args> {
  checkOptions("jsonSchemaInput", options, ["validator"]);
  const { validator = (plain) => compileSchema(plain) } = options;
  checkFunction("jsonSchemaInput", { validator });
  let jsonSchema: unknown;
  try {
    jsonSchema = JSON.parse(JSON.stringify(schema));
  } catch (cause) {
    throw createSchemaError("", "is not plain JSON", cause);
  }
  if (!isPlainObject(jsonSchema)) throw createSchemaError("", `is ${describeValue(jsonSchema)}, not an object`);
  const plain = deepFreeze(jsonSchema) as JsonObject;
  const { problem, findCostIssue } = measureSchema(plain);
  if (problem !== undefined) throw createSchemaError("", problem);
  const check = validator(plain);
  const validate = (value: unknown): readonly SchemaIssue[] => {
    const issue = findCostIssue(value);
    return issue === undefined ? check(value) : [issue];
  };
  return Object.freeze({ jsonSchema: plain, validate });
}

/** Adds the issues of a value to `found`. `path` is the path of the value. */
type Check = (value: unknown, path: readonly string[], found: SchemaIssue[]) => void;

const maxIssues = 20;

/**
 * Compiles a schema, which may be a part of `root`, to a function that returns the issues of a value. Throws
 * `invalid_tool` for an unsupported schema.
 */
export function compileSchema(
  schema: JsonObject,
  root: JsonObject = schema,
): (value: unknown) => readonly SchemaIssue[] {
  const check = createCompiler(root)(schema, "");
  return (value) => {
    const found: SchemaIssue[] = [];
    check(value, [], found);
    return found.slice(0, maxIssues);
  };
}

function createCompiler(root: JsonObject): (schema: unknown, at: string) => Check {
  const byRef = new Map<string, { check: Check | undefined }>();

  const compile = (schema: unknown, at: string): Check => {
    if (schema === true) return acceptAnything;
    if (schema === false) return (_value, path, found) => addIssue(found, path, "must be absent");
    if (!isPlainObject(schema)) throw createSchemaError(at, `is ${describeValue(schema)}, not a schema`);
    for (const keyword of Object.keys(schema)) {
      if (!knownKeywords.has(keyword)) throw createSchemaError(at, `has the unknown keyword ${describeValue(keyword)}`);
    }
    const parts: Check[] = [];
    for (const [keyword, make] of keywords) {
      if (!Object.hasOwn(schema, keyword)) continue;
      parts.push(make(schema[keyword], { schema, at: `${at}/${keyword}`, compile, follow }));
    }
    const [only] = parts;
    if (parts.length === 1 && only !== undefined) return only;
    return (value, path, found) => {
      for (const part of parts) part(value, path, found);
    };
  };

  const follow = (ref: string, at: string): Check => {
    const known = byRef.get(ref);
    if (known !== undefined) return (value, path, found) => known.check?.(value, path, found);
    const slot: { check: Check | undefined } = { check: undefined };
    byRef.set(ref, slot);
    const target = resolveRef(root, ref);
    if (target === undefined)
      throw createSchemaError(at, `refers to ${describeValue(ref)}, which does not exist in the schema`);
    slot.check = compile(target, ref);
    return slot.check;
  };

  return compile;
}

interface KeywordContext {
  readonly schema: Record<string, unknown>;
  readonly at: string;
  readonly compile: (schema: unknown, at: string) => Check;
  readonly follow: (ref: string, at: string) => Check;
}

const typeTests: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number" && Number.isFinite(value),
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  object: isPlainObject,
  null: (value) => value === null,
};

/** Validation keywords and their compilers; the operand is the value of the keyword in the schema. */
const keywords: readonly (readonly [keyword: string, make: (operand: unknown, context: KeywordContext) => Check])[] = [
  [
    "type",
    (operand, { at }) => {
      const names = Array.isArray(operand) ? operand : [operand];
      const tests = names.map((name) => {
        const test = typeof name === "string" && Object.hasOwn(typeTests, name) ? typeTests[name] : undefined;
        if (test === undefined) throw createSchemaError(at, `is ${describeValue(name)}, not a type`);
        return test;
      });
      if (tests.length === 0) throw createSchemaError(at, "contains no type");
      const message = `expected ${names.join(" or ")}`;
      return (value, path, found) => {
        if (!tests.some((test) => test(value))) addIssue(found, path, message);
      };
    },
  ],
  [
    "enum",
    (operand, { at }) => {
      const allowed = expectList(operand, at);
      if (allowed.length === 0) throw createSchemaError(at, "allows nothing");
      const message = `expected one of ${allowed.map((each) => JSON.stringify(each)).join(", ")}`;
      return (value, path, found) => {
        if (!allowed.some((each) => isSameData(each, value))) addIssue(found, path, message);
      };
    },
  ],
  [
    "const",
    (operand) => (value, path, found) => {
      if (!isSameData(operand, value)) addIssue(found, path, `expected ${JSON.stringify(operand)}`);
    },
  ],
  ["properties", (operand, context) => compileProperties(operand, context)],
  [
    "required",
    (operand, { schema, at }) => {
      const names = expectStrings(operand, at);
      const types = isPlainObject(schema["properties"]) ? schema["properties"] : {};
      return (value, path, found) => {
        if (!isPlainObject(value)) return;
        for (const name of names) {
          if (Object.hasOwn(value, name)) continue;
          const part = Object.hasOwn(types, name) ? types[name] : undefined;
          const type = isPlainObject(part) && typeof part["type"] === "string" ? `, expected ${part["type"]}` : "";
          addIssue(found, [...path, name], `is missing${type}`);
        }
      };
    },
  ],
  ["additionalProperties", (operand, context) => compileAdditionalProperties(operand, context)],
  ["patternProperties", (operand, { at, compile }) => compilePatternProperties(operand, at, compile)],
  [
    "propertyNames",
    (operand, { at, compile }) => {
      const check = compile(operand, at);
      return (value, path, found) => {
        if (isPlainObject(value)) for (const name of Object.keys(value)) check(name, [...path, name], found);
      };
    },
  ],
  ["minProperties", createLimitCompiler(countProperties, (size, limit) => size >= limit, "at least", "properties")],
  ["maxProperties", createLimitCompiler(countProperties, (size, limit) => size <= limit, "at most", "properties")],
  ["prefixItems", (operand, { at, compile }) => compilePrefixItems(expectList(operand, at), at, compile)],
  [
    "items",
    (operand, { schema, at, compile }) => {
      if (Array.isArray(operand)) return compilePrefixItems(operand, at, compile);
      const check = compile(operand, at);
      const from = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"].length : 0;
      return createItemsCheck(from, check);
    },
  ],
  [
    "additionalItems",
    (operand, { schema, at, compile }) => {
      const check = compile(operand, at);
      return Array.isArray(schema["items"]) ? createItemsCheck(schema["items"].length, check) : acceptAnything;
    },
  ],
  ["minItems", createLimitCompiler(countItems, (size, limit) => size >= limit, "at least", "items")],
  ["maxItems", createLimitCompiler(countItems, (size, limit) => size <= limit, "at most", "items")],
  [
    "uniqueItems",
    (operand) => (value, path, found) => {
      if (operand === true && Array.isArray(value) && hasDuplicates(value))
        addIssue(found, path, "expected unique items");
    },
  ],
  ["minLength", createLimitCompiler(countCodePoints, (size, limit) => size >= limit, "at least", "characters")],
  ["maxLength", createLimitCompiler(countCodePoints, (size, limit) => size <= limit, "at most", "characters")],
  [
    "pattern",
    (operand, { at }) => {
      const pattern = parsePattern(operand, at);
      return (value, path, found) => {
        if (typeof value === "string" && !pattern.test(value))
          addIssue(found, path, `expected a string that matches ${pattern}`);
      };
    },
  ],
  ["minimum", createLimitCompiler(toNumber, (value, limit) => value >= limit, "at least")],
  ["maximum", createLimitCompiler(toNumber, (value, limit) => value <= limit, "at most")],
  ["exclusiveMinimum", createLimitCompiler(toNumber, (value, limit) => value > limit, "more than")],
  ["exclusiveMaximum", createLimitCompiler(toNumber, (value, limit) => value < limit, "less than")],
  ["multipleOf", createLimitCompiler(toNumber, isMultiple, "a multiple of")],
  [
    "anyOf",
    (operand, { at, compile }) => {
      const checks = expectList(operand, at).map((each, index) => compile(each, `${at}/${index}`));
      return (value, path, found) => {
        if (!checks.some((check) => matchesSchema(check, value, path)))
          addIssue(found, path, describeAlternatives(operand));
      };
    },
  ],
  [
    "oneOf",
    (operand, { at, compile }) => {
      const checks = expectList(operand, at).map((each, index) => compile(each, `${at}/${index}`));
      return (value, path, found) => {
        const fitting = checks.filter((check) => matchesSchema(check, value, path)).length;
        if (fitting === 0) addIssue(found, path, describeAlternatives(operand));
        if (fitting > 1) addIssue(found, path, "matches several alternatives, expected exactly one");
      };
    },
  ],
  [
    "allOf",
    (operand, { at, compile }) => {
      const checks = expectList(operand, at).map((each, index) => compile(each, `${at}/${index}`));
      return (value, path, found) => {
        for (const check of checks) check(value, path, found);
      };
    },
  ],
  [
    "not",
    (operand, { at, compile }) => {
      const check = compile(operand, at);
      return (value, path, found) => {
        if (matchesSchema(check, value, path)) addIssue(found, path, "matches the schema that `not` forbids");
      };
    },
  ],
  [
    "$ref",
    (operand, { at, follow }) => {
      if (typeof operand !== "string") throw createSchemaError(at, `is ${describeValue(operand)}, not a reference`);
      const check = follow(operand, at);
      return (value, path, found) => {
        if (path.length > maxDepth) addIssue(found, path, "is nested too deeply");
        else check(value, path, found);
      };
    },
  ],
];

/** Annotation keywords without validation. `format` is only an annotation unless a custom validator enforces it. */
const descriptions = [
  "$schema",
  "$id",
  "$comment",
  "$defs",
  "definitions",
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
  "format",
  "contentEncoding",
  "contentMediaType",
];
const knownKeywords: ReadonlySet<string> = new Set([...keywords.map(([keyword]) => keyword), ...descriptions]);

function compileProperties(operand: unknown, { at, compile }: KeywordContext): Check {
  if (!isPlainObject(operand)) throw createSchemaError(at, `is ${describeValue(operand)}, not an object of schemas`);
  const parts = Object.entries(operand).map(([name, part]) => [name, compile(part, `${at}/${name}`)] as const);
  return (value, path, found) => {
    if (!isPlainObject(value)) return;
    for (const [name, check] of parts) if (Object.hasOwn(value, name)) check(value[name], [...path, name], found);
  };
}

function compileAdditionalProperties(operand: unknown, { schema, at, compile }: KeywordContext): Check {
  const properties = isPlainObject(schema["properties"]) ? schema["properties"] : {};
  const patterns = isPlainObject(schema["patternProperties"])
    ? Object.keys(schema["patternProperties"]).map((each) => parsePattern(each, at))
    : [];
  const check: Check =
    operand === false ? (_value, path, found) => addIssue(found, path, "unknown argument") : compile(operand, at);
  return (value, path, found) => {
    if (!isPlainObject(value)) return;
    for (const name of Object.keys(value)) {
      if (Object.hasOwn(properties, name) || patterns.some((pattern) => pattern.test(name))) continue;
      check(value[name], [...path, name], found);
    }
  };
}

function compilePatternProperties(operand: unknown, at: string, compile: KeywordContext["compile"]): Check {
  if (!isPlainObject(operand)) throw createSchemaError(at, `is ${describeValue(operand)}, not an object of schemas`);
  const parts = Object.entries(operand).map(
    ([each, part]) => [parsePattern(each, at), compile(part, `${at}/${each}`)] as const,
  );
  return (value, path, found) => {
    if (!isPlainObject(value)) return;
    for (const name of Object.keys(value))
      for (const [pattern, check] of parts) if (pattern.test(name)) check(value[name], [...path, name], found);
  };
}

function compilePrefixItems(operand: readonly unknown[], at: string, compile: KeywordContext["compile"]): Check {
  const checks = operand.map((each, index) => compile(each, `${at}/${index}`));
  return (value, path, found) => {
    if (!Array.isArray(value)) return;
    for (const [index, check] of checks.entries())
      if (index < value.length) check(value[index], [...path, String(index)], found);
  };
}

function createItemsCheck(start: number, check: Check): Check {
  return (value, path, found) => {
    if (!Array.isArray(value)) return;
    for (let index = start; index < value.length && found.length < maxIssues; index++)
      check(value[index], [...path, String(index)], found);
  };
}

/** Creates the compiler of a keyword that compares a size or a number with a limit. */
function createLimitCompiler(
  getSize: (value: unknown) => number | undefined,
  isAllowed: (size: number, limit: number) => boolean,
  phrase: string,
  unit = "",
): (operand: unknown, context: KeywordContext) => Check {
  return (operand, { at }) => {
    if (typeof operand !== "number" || Number.isNaN(operand))
      throw createSchemaError(at, `is ${describeValue(operand)}, not a number`);
    const message = `expected ${phrase} ${operand}${unit === "" ? "" : ` ${unit}`}`;
    return (value, path, found) => {
      const size = getSize(value);
      if (size !== undefined && !isAllowed(size, operand)) addIssue(found, path, message);
    };
  };
}

function countProperties(value: unknown): number | undefined {
  return isPlainObject(value) ? Object.keys(value).length : undefined;
}

function countItems(value: unknown): number | undefined {
  return Array.isArray(value) ? value.length : undefined;
}

/** Counts code points, as JSON Schema requires. */
function countCodePoints(value: unknown): number | undefined {
  if (typeof value !== "string") return undefined;
  let size = 0;
  for (const _point of value) size += 1;
  return size;
}

function toNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function isMultiple(value: number, divisor: number): boolean {
  const quotient = value / divisor;
  return Math.abs(quotient - Math.round(quotient)) < 1e-9;
}

function hasDuplicates(items: readonly unknown[]): boolean {
  const plain = new Set<unknown>();
  const others: unknown[] = [];
  for (const item of items) {
    if (typeof item === "object" && item !== null) {
      if (others.some((other) => isSameData(other, item))) return true;
      others.push(item);
    } else if (plain.has(item)) return true;
    else plain.add(item);
  }
  return false;
}

function matchesSchema(check: Check, value: unknown, path: readonly string[]): boolean {
  const found: SchemaIssue[] = [];
  check(value, path, found);
  return found.length === 0;
}

/** Describes the alternatives by their types or constants, if each has one. */
function describeAlternatives(operand: unknown): string {
  const alternatives = (Array.isArray(operand) ? operand : []).map((each: unknown) => {
    if (!isPlainObject(each)) return undefined;
    if (Object.hasOwn(each, "const")) return JSON.stringify(each["const"]);
    return typeof each["type"] === "string" ? each["type"] : undefined;
  });
  if (alternatives.includes(undefined)) return "matches none of the alternatives";
  return `expected ${[...new Set(alternatives)].join(" or ")}`;
}

function expectList(operand: unknown, at: string): readonly unknown[] {
  if (Array.isArray(operand)) return operand;
  throw createSchemaError(at, `is ${describeValue(operand)}, not a list`);
}

function expectStrings(operand: unknown, at: string): readonly string[] {
  const list = expectList(operand, at);
  if (list.every((each) => typeof each === "string")) return list;
  throw createSchemaError(at, "must contain only strings");
}

function parsePattern(operand: unknown, at: string): RegExp {
  if (typeof operand !== "string") throw createSchemaError(at, `is ${describeValue(operand)}, not a pattern`);
  try {
    return new RegExp(operand, "u");
  } catch (cause) {
    throw createSchemaError(at, `is ${describeValue(operand)}, not a valid pattern`, cause);
  }
}

function addIssue(found: SchemaIssue[], path: readonly string[], message: string): void {
  if (found.length < maxIssues) found.push({ path: path.join("."), message });
}

function acceptAnything(): void {
  // Accepts every value.
}

function createSchemaError(at: string, reason: string, cause?: unknown): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `the JSON Schema of a tool's arguments${at === "" ? "" : `, at "${at}",`} ${reason}`,
    next: "Fix the schema, or pass a validator that supports it: jsonSchemaInput(schema, { validator })",
    cause,
  });
}
