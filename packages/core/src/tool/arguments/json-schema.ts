/**
 * JSON Schema of tool arguments. Schemas are enforced exactly or refused: an unknown keyword requires a custom
 * validator, because ignoring a keyword would accept values that the schema forbids.
 */
import { StatewrightError } from "../../base/errors.ts";
import { deepFreeze, describeValue, isPlainObject, isSameData, type JsonObject, maxDepth } from "../../base/json.ts";
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
  { validator = (plain) => compileSchema(plain) }: { readonly validator?: JsonSchemaValidator } = {},
): JsonSchemaInput<Args> {
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
    for (const [word, make] of keywords) {
      if (!Object.hasOwn(schema, word)) continue;
      parts.push(make(schema[word], { schema, at: `${at}/${word}`, compile, follow }));
    }
    const [only] = parts;
    if (parts.length === 1 && only !== undefined) return only;
    return (value, path, found) => {
      for (const part of parts) part(value, path, found);
    };
  };

  const follow = (ref: string, at: string): Check => {
    const met = byRef.get(ref);
    if (met !== undefined) return (value, path, found) => met.check?.(value, path, found);
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

/** Validation keywords and their compilers. */
const keywords: readonly (readonly [word: string, make: (said: unknown, place: KeywordContext) => Check])[] = [
  [
    "type",
    (said, { at }) => {
      const names = Array.isArray(said) ? said : [said];
      const tests = names.map((name) => {
        const test = typeof name === "string" && Object.hasOwn(typeTests, name) ? typeTests[name] : undefined;
        if (test === undefined) throw createSchemaError(at, `is ${describeValue(name)}, not a type`);
        return test;
      });
      if (tests.length === 0) throw createSchemaError(at, "contains no type");
      const wanted = `expected ${names.join(" or ")}`;
      return (value, path, found) => {
        if (!tests.some((test) => test(value))) addIssue(found, path, wanted);
      };
    },
  ],
  [
    "enum",
    (said, { at }) => {
      const allowed = expectList(said, at);
      if (allowed.length === 0) throw createSchemaError(at, "allows nothing");
      const wanted = `expected one of ${allowed.map((each) => JSON.stringify(each)).join(", ")}`;
      return (value, path, found) => {
        if (!allowed.some((each) => isSameData(each, value))) addIssue(found, path, wanted);
      };
    },
  ],
  [
    "const",
    (said) => (value, path, found) => {
      if (!isSameData(said, value)) addIssue(found, path, `expected ${JSON.stringify(said)}`);
    },
  ],
  ["properties", (said, place) => compileProperties(said, place)],
  [
    "required",
    (said, { schema, at }) => {
      const names = expectStrings(said, at);
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
  ["additionalProperties", (said, place) => compileAdditionalProperties(said, place)],
  ["patternProperties", (said, { at, compile }) => compilePatternProperties(said, at, compile)],
  [
    "propertyNames",
    (said, { at, compile }) => {
      const check = compile(said, at);
      return (value, path, found) => {
        if (isPlainObject(value)) for (const name of Object.keys(value)) check(name, [...path, name], found);
      };
    },
  ],
  ["minProperties", createLimitCompiler(countProperties, (size, limit) => size >= limit, "at least", "properties")],
  ["maxProperties", createLimitCompiler(countProperties, (size, limit) => size <= limit, "at most", "properties")],
  ["prefixItems", (said, { at, compile }) => compilePrefixItems(expectList(said, at), at, compile)],
  [
    "items",
    (said, { schema, at, compile }) => {
      if (Array.isArray(said)) return compilePrefixItems(said, at, compile);
      const check = compile(said, at);
      const from = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"].length : 0;
      return createItemsCheck(from, check);
    },
  ],
  [
    "additionalItems",
    (said, { schema, at, compile }) => {
      const check = compile(said, at);
      return Array.isArray(schema["items"]) ? createItemsCheck(schema["items"].length, check) : acceptAnything;
    },
  ],
  ["minItems", createLimitCompiler(countItems, (size, limit) => size >= limit, "at least", "items")],
  ["maxItems", createLimitCompiler(countItems, (size, limit) => size <= limit, "at most", "items")],
  [
    "uniqueItems",
    (said) => (value, path, found) => {
      if (said === true && Array.isArray(value) && hasDuplicates(value)) addIssue(found, path, "expected unique items");
    },
  ],
  ["minLength", createLimitCompiler(countCodePoints, (size, limit) => size >= limit, "at least", "characters")],
  ["maxLength", createLimitCompiler(countCodePoints, (size, limit) => size <= limit, "at most", "characters")],
  [
    "pattern",
    (said, { at }) => {
      const pattern = parsePattern(said, at);
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
    (said, { at, compile }) => {
      const checks = expectList(said, at).map((each, index) => compile(each, `${at}/${index}`));
      return (value, path, found) => {
        if (!checks.some((check) => matchesSchema(check, value, path)))
          addIssue(found, path, describeAlternatives(said));
      };
    },
  ],
  [
    "oneOf",
    (said, { at, compile }) => {
      const checks = expectList(said, at).map((each, index) => compile(each, `${at}/${index}`));
      return (value, path, found) => {
        const fitting = checks.filter((check) => matchesSchema(check, value, path)).length;
        if (fitting === 0) addIssue(found, path, describeAlternatives(said));
        if (fitting > 1) addIssue(found, path, "matches several alternatives, expected exactly one");
      };
    },
  ],
  [
    "allOf",
    (said, { at, compile }) => {
      const checks = expectList(said, at).map((each, index) => compile(each, `${at}/${index}`));
      return (value, path, found) => {
        for (const check of checks) check(value, path, found);
      };
    },
  ],
  [
    "not",
    (said, { at, compile }) => {
      const check = compile(said, at);
      return (value, path, found) => {
        if (matchesSchema(check, value, path)) addIssue(found, path, "matches the schema that `not` forbids");
      };
    },
  ],
  [
    "$ref",
    (said, { at, follow }) => {
      if (typeof said !== "string") throw createSchemaError(at, `is ${describeValue(said)}, not a reference`);
      const check = follow(said, at);
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
const knownKeywords: ReadonlySet<string> = new Set([...keywords.map(([word]) => word), ...descriptions]);

function compileProperties(said: unknown, { at, compile }: KeywordContext): Check {
  if (!isPlainObject(said)) throw createSchemaError(at, `is ${describeValue(said)}, not an object of schemas`);
  const parts = Object.entries(said).map(([name, part]) => [name, compile(part, `${at}/${name}`)] as const);
  return (value, path, found) => {
    if (!isPlainObject(value)) return;
    for (const [name, check] of parts) if (Object.hasOwn(value, name)) check(value[name], [...path, name], found);
  };
}

function compileAdditionalProperties(said: unknown, { schema, at, compile }: KeywordContext): Check {
  const named = isPlainObject(schema["properties"]) ? schema["properties"] : {};
  const patterns = isPlainObject(schema["patternProperties"])
    ? Object.keys(schema["patternProperties"]).map((each) => parsePattern(each, at))
    : [];
  const check: Check =
    said === false ? (_value, path, found) => addIssue(found, path, "unknown argument") : compile(said, at);
  return (value, path, found) => {
    if (!isPlainObject(value)) return;
    for (const name of Object.keys(value)) {
      if (Object.hasOwn(named, name) || patterns.some((pattern) => pattern.test(name))) continue;
      check(value[name], [...path, name], found);
    }
  };
}

function compilePatternProperties(said: unknown, at: string, compile: KeywordContext["compile"]): Check {
  if (!isPlainObject(said)) throw createSchemaError(at, `is ${describeValue(said)}, not an object of schemas`);
  const parts = Object.entries(said).map(
    ([each, part]) => [parsePattern(each, at), compile(part, `${at}/${each}`)] as const,
  );
  return (value, path, found) => {
    if (!isPlainObject(value)) return;
    for (const name of Object.keys(value))
      for (const [pattern, check] of parts) if (pattern.test(name)) check(value[name], [...path, name], found);
  };
}

function compilePrefixItems(said: readonly unknown[], at: string, compile: KeywordContext["compile"]): Check {
  const checks = said.map((each, index) => compile(each, `${at}/${index}`));
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
): (said: unknown, place: KeywordContext) => Check {
  return (said, { at }) => {
    if (typeof said !== "number" || Number.isNaN(said))
      throw createSchemaError(at, `is ${describeValue(said)}, not a number`);
    const wanted = `expected ${phrase} ${said}${unit === "" ? "" : ` ${unit}`}`;
    return (value, path, found) => {
      const size = getSize(value);
      if (size !== undefined && !isAllowed(size, said)) addIssue(found, path, wanted);
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
function describeAlternatives(said: unknown): string {
  const named = (Array.isArray(said) ? said : []).map((each: unknown) => {
    if (!isPlainObject(each)) return undefined;
    if (Object.hasOwn(each, "const")) return JSON.stringify(each["const"]);
    return typeof each["type"] === "string" ? each["type"] : undefined;
  });
  if (named.includes(undefined)) return "matches none of the alternatives";
  return `expected ${[...new Set(named)].join(" or ")}`;
}

function expectList(said: unknown, at: string): readonly unknown[] {
  if (Array.isArray(said)) return said;
  throw createSchemaError(at, `is ${describeValue(said)}, not a list`);
}

function expectStrings(said: unknown, at: string): readonly string[] {
  const list = expectList(said, at);
  if (list.every((each) => typeof each === "string")) return list;
  throw createSchemaError(at, "must contain only strings");
}

function parsePattern(said: unknown, at: string): RegExp {
  if (typeof said !== "string") throw createSchemaError(at, `is ${describeValue(said)}, not a pattern`);
  try {
    return new RegExp(said, "u");
  } catch (cause) {
    throw createSchemaError(at, `is ${describeValue(said)}, not a valid pattern`, cause);
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
