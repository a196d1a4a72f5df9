/**
 * JSON Schema as tools use it. What it says is obeyed to the letter or refused: a schema with a word that is not known here
 * needs a validator of its own, since to skip a word would let through what the schema forbids.
 */
import { StatewrightError } from "../../base/errors.ts";
import { deepestLevel, deepFreeze, describeValue, isPlainObject, type JsonObject, sameData } from "../../base/json.ts";
import type { SchemaIssue } from "../../base/schema.ts";

/** Makes the check of a JSON Schema: what is wrong with a value, nothing when it fits. An adapter of ajv is one. */
export type JsonSchemaValidator = (schema: JsonObject) => (value: unknown) => readonly SchemaIssue[];

/** Arguments described by a JSON Schema, which is sent unaltered; `validate` says what is wrong with a value. */
export interface JsonSchemaInput<Args = unknown> {
  readonly jsonSchema: JsonObject;
  readonly validate: (value: unknown) => readonly SchemaIssue[];
  /** Only for the compiler: what a tool is given. */
  readonly types?: { readonly args: Args };
}

/**
 * Arguments of a tool from a JSON Schema of an object. It is checked by `validator`, or by Statewright, which knows types,
 * `enum`, `const`, `properties`, `required`, lists, bounds, patterns, `anyOf`, `oneOf`, `allOf`, `not` and local `$ref`.
 * Throws `invalid_tool` for any other word, and for a schema that contradicts itself.
 */
export function jsonSchemaInput<Args = Readonly<Record<string, unknown>>>(
  schema: object,
  { validator = (plain) => checkOf(plain) }: { readonly validator?: JsonSchemaValidator } = {},
): JsonSchemaInput<Args> {
  let jsonSchema: unknown;
  try {
    jsonSchema = JSON.parse(JSON.stringify(schema));
  } catch (cause) {
    throw unfit("", "is not plain JSON", cause);
  }
  if (!isPlainObject(jsonSchema)) throw unfit("", `is ${describeValue(jsonSchema)}, not an object`);
  const plain = deepFreeze(jsonSchema) as JsonObject;
  return Object.freeze({ jsonSchema: plain, validate: validator(plain) });
}

/** Finds what is wrong with a value; its path leads to it. */
type Check = (value: unknown, path: readonly string[], found: SchemaIssue[]) => void;

const mostIssues = 20;

/**
 * Make the check of a schema, which may be a part of `root`. Throws `invalid_tool` where it says something that is not
 * known here.
 */
export function checkOf(schema: JsonObject, root: JsonObject = schema): (value: unknown) => readonly SchemaIssue[] {
  const check = compiler(root)(schema, "");
  return (value) => {
    const found: SchemaIssue[] = [];
    check(value, [], found);
    return found.slice(0, mostIssues);
  };
}

function compiler(root: JsonObject): (schema: unknown, at: string) => Check {
  const byRef = new Map<string, { check: Check | undefined }>();

  const compile = (schema: unknown, at: string): Check => {
    if (schema === true) return anything;
    if (schema === false) return (_value, path, found) => add(found, path, "must not be there");
    if (!isPlainObject(schema)) throw unfit(at, `is ${describeValue(schema)}, not a schema`);
    for (const word of Object.keys(schema)) {
      if (!known.has(word)) throw unfit(at, `says ${describeValue(word)}, which is not known here`);
    }
    const parts: Check[] = [];
    for (const [word, make] of words) {
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
    if (target === undefined) throw unfit(at, `points to ${describeValue(ref)}, which is not in the schema`);
    slot.check = compile(target, ref);
    return slot.check;
  };

  return compile;
}

/** The part of a schema that a local reference names. */
export function resolveRef(root: JsonObject, ref: string): unknown {
  if (ref !== "#" && !ref.startsWith("#/")) return undefined;
  let at: unknown = root;
  for (const step of ref.split("/").slice(1)) {
    const key = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!(isPlainObject(at) || Array.isArray(at)) || !Object.hasOwn(at, key)) return undefined;
    at = Reflect.get(at, key);
  }
  return at;
}

interface Place {
  readonly schema: Record<string, unknown>;
  readonly at: string;
  readonly compile: (schema: unknown, at: string) => Check;
  readonly follow: (ref: string, at: string) => Check;
}

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number" && Number.isFinite(value),
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  object: isPlainObject,
  null: (value) => value === null,
};

/** The words that forbid something, and how each is checked. */
const words: readonly (readonly [word: string, make: (said: unknown, place: Place) => Check])[] = [
  [
    "type",
    (said, { at }) => {
      const names = Array.isArray(said) ? said : [said];
      const tests = names.map((name) => {
        const test = typeof name === "string" && Object.hasOwn(types, name) ? types[name] : undefined;
        if (test === undefined) throw unfit(at, `is ${describeValue(name)}, which is no type`);
        return test;
      });
      if (tests.length === 0) throw unfit(at, "names no type");
      const wanted = `expected ${names.join(" or ")}`;
      return (value, path, found) => {
        if (!tests.some((test) => test(value))) add(found, path, wanted);
      };
    },
  ],
  [
    "enum",
    (said, { at }) => {
      const allowed = listOf(said, at);
      if (allowed.length === 0) throw unfit(at, "allows nothing");
      const wanted = `expected one of ${allowed.map((each) => JSON.stringify(each)).join(", ")}`;
      return (value, path, found) => {
        if (!allowed.some((each) => sameData(each, value))) add(found, path, wanted);
      };
    },
  ],
  [
    "const",
    (said) => (value, path, found) => {
      if (!sameData(said, value)) add(found, path, `expected ${JSON.stringify(said)}`);
    },
  ],
  ["properties", (said, place) => propertiesCheck(said, place)],
  [
    "required",
    (said, { schema, at }) => {
      const names = textsOf(said, at);
      const types = isPlainObject(schema["properties"]) ? schema["properties"] : {};
      return (value, path, found) => {
        if (!isPlainObject(value)) return;
        for (const name of names) {
          if (Object.hasOwn(value, name)) continue;
          const part = Object.hasOwn(types, name) ? types[name] : undefined;
          const type = isPlainObject(part) && typeof part["type"] === "string" ? `, expected ${part["type"]}` : "";
          add(found, [...path, name], `is missing${type}`);
        }
      };
    },
  ],
  ["additionalProperties", (said, place) => restCheck(said, place)],
  ["patternProperties", (said, { at, compile }) => patternsCheck(said, at, compile)],
  [
    "propertyNames",
    (said, { at, compile }) => {
      const check = compile(said, at);
      return (value, path, found) => {
        if (isPlainObject(value)) for (const name of Object.keys(value)) check(name, [...path, name], found);
      };
    },
  ],
  ["minProperties", bound(sizeOfObject, (size, limit) => size >= limit, "at least", "properties")],
  ["maxProperties", bound(sizeOfObject, (size, limit) => size <= limit, "at most", "properties")],
  ["prefixItems", (said, { at, compile }) => placesCheck(listOf(said, at), at, compile)],
  [
    "items",
    (said, { schema, at, compile }) => {
      if (Array.isArray(said)) return placesCheck(said, at, compile);
      const check = compile(said, at);
      const from = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"].length : 0;
      return itemsFrom(from, check);
    },
  ],
  [
    "additionalItems",
    (said, { schema, at, compile }) => {
      const check = compile(said, at);
      return Array.isArray(schema["items"]) ? itemsFrom(schema["items"].length, check) : anything;
    },
  ],
  ["minItems", bound(sizeOfList, (size, limit) => size >= limit, "at least", "items")],
  ["maxItems", bound(sizeOfList, (size, limit) => size <= limit, "at most", "items")],
  [
    "uniqueItems",
    (said) => (value, path, found) => {
      if (said === true && Array.isArray(value) && hasTwins(value)) add(found, path, "expected items that all differ");
    },
  ],
  ["minLength", bound(sizeOfText, (size, limit) => size >= limit, "at least", "characters")],
  ["maxLength", bound(sizeOfText, (size, limit) => size <= limit, "at most", "characters")],
  [
    "pattern",
    (said, { at }) => {
      const pattern = patternOf(said, at);
      return (value, path, found) => {
        if (typeof value === "string" && !pattern.test(value)) add(found, path, `expected a text that fits ${pattern}`);
      };
    },
  ],
  ["minimum", bound(asNumber, (value, limit) => value >= limit, "at least")],
  ["maximum", bound(asNumber, (value, limit) => value <= limit, "at most")],
  ["exclusiveMinimum", bound(asNumber, (value, limit) => value > limit, "more than")],
  ["exclusiveMaximum", bound(asNumber, (value, limit) => value < limit, "less than")],
  ["multipleOf", bound(asNumber, isMultiple, "a multiple of")],
  [
    "anyOf",
    (said, { at, compile }) => {
      const checks = listOf(said, at).map((each, index) => compile(each, `${at}/${index}`));
      return (value, path, found) => {
        if (!checks.some((check) => fits(check, value, path))) add(found, path, alternatives(said));
      };
    },
  ],
  [
    "oneOf",
    (said, { at, compile }) => {
      const checks = listOf(said, at).map((each, index) => compile(each, `${at}/${index}`));
      return (value, path, found) => {
        const fitting = checks.filter((check) => fits(check, value, path)).length;
        if (fitting === 0) add(found, path, alternatives(said));
        if (fitting > 1) add(found, path, "fits several of the alternatives, expected one");
      };
    },
  ],
  [
    "allOf",
    (said, { at, compile }) => {
      const checks = listOf(said, at).map((each, index) => compile(each, `${at}/${index}`));
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
        if (fits(check, value, path)) add(found, path, "is what it must not be");
      };
    },
  ],
  [
    "$ref",
    (said, { at, follow }) => {
      if (typeof said !== "string") throw unfit(at, `is ${describeValue(said)}, not a reference`);
      const check = follow(said, at);
      return (value, path, found) => {
        if (path.length > deepestLevel) add(found, path, "is nested too deeply");
        else check(value, path, found);
      };
    },
  ],
];

/** Words that describe and forbid nothing; `format` is one of them where nobody says otherwise. */
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
const known: ReadonlySet<string> = new Set([...words.map(([word]) => word), ...descriptions]);

function propertiesCheck(said: unknown, { at, compile }: Place): Check {
  if (!isPlainObject(said)) throw unfit(at, `is ${describeValue(said)}, not an object of schemas`);
  const parts = Object.entries(said).map(([name, part]) => [name, compile(part, `${at}/${name}`)] as const);
  return (value, path, found) => {
    if (!isPlainObject(value)) return;
    for (const [name, check] of parts) if (Object.hasOwn(value, name)) check(value[name], [...path, name], found);
  };
}

function restCheck(said: unknown, { schema, at, compile }: Place): Check {
  const named = isPlainObject(schema["properties"]) ? schema["properties"] : {};
  const patterns = isPlainObject(schema["patternProperties"])
    ? Object.keys(schema["patternProperties"]).map((each) => patternOf(each, at))
    : [];
  const check: Check =
    said === false ? (_value, path, found) => add(found, path, "unknown argument") : compile(said, at);
  return (value, path, found) => {
    if (!isPlainObject(value)) return;
    for (const name of Object.keys(value)) {
      if (Object.hasOwn(named, name) || patterns.some((pattern) => pattern.test(name))) continue;
      check(value[name], [...path, name], found);
    }
  };
}

function patternsCheck(said: unknown, at: string, compile: Place["compile"]): Check {
  if (!isPlainObject(said)) throw unfit(at, `is ${describeValue(said)}, not an object of schemas`);
  const parts = Object.entries(said).map(
    ([each, part]) => [patternOf(each, at), compile(part, `${at}/${each}`)] as const,
  );
  return (value, path, found) => {
    if (!isPlainObject(value)) return;
    for (const name of Object.keys(value))
      for (const [pattern, check] of parts) if (pattern.test(name)) check(value[name], [...path, name], found);
  };
}

function placesCheck(said: readonly unknown[], at: string, compile: Place["compile"]): Check {
  const checks = said.map((each, index) => compile(each, `${at}/${index}`));
  return (value, path, found) => {
    if (!Array.isArray(value)) return;
    for (const [index, check] of checks.entries())
      if (index < value.length) check(value[index], [...path, String(index)], found);
  };
}

function itemsFrom(start: number, check: Check): Check {
  return (value, path, found) => {
    if (!Array.isArray(value)) return;
    for (let index = start; index < value.length && found.length < mostIssues; index++)
      check(value[index], [...path, String(index)], found);
  };
}

/** A word that compares a size, or a number, with a limit. */
function bound(
  sizeOf: (value: unknown) => number | undefined,
  holds: (size: number, limit: number) => boolean,
  words: string,
  unit = "",
): (said: unknown, place: Place) => Check {
  return (said, { at }) => {
    if (typeof said !== "number" || Number.isNaN(said)) throw unfit(at, `is ${describeValue(said)}, not a number`);
    const wanted = `expected ${words} ${said}${unit === "" ? "" : ` ${unit}`}`;
    return (value, path, found) => {
      const size = sizeOf(value);
      if (size !== undefined && !holds(size, said)) add(found, path, wanted);
    };
  };
}

function sizeOfObject(value: unknown): number | undefined {
  return isPlainObject(value) ? Object.keys(value).length : undefined;
}

function sizeOfList(value: unknown): number | undefined {
  return Array.isArray(value) ? value.length : undefined;
}

/** In code points, as JSON Schema counts. */
function sizeOfText(value: unknown): number | undefined {
  if (typeof value !== "string") return undefined;
  let size = 0;
  for (const _point of value) size += 1;
  return size;
}

function asNumber(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function isMultiple(value: number, of: number): boolean {
  const times = value / of;
  return Math.abs(times - Math.round(times)) < 1e-9;
}

function hasTwins(items: readonly unknown[]): boolean {
  const plain = new Set<unknown>();
  const others: unknown[] = [];
  for (const item of items) {
    if (typeof item === "object" && item !== null) {
      if (others.some((other) => sameData(other, item))) return true;
      others.push(item);
    } else if (plain.has(item)) return true;
    else plain.add(item);
  }
  return false;
}

function fits(check: Check, value: unknown, path: readonly string[]): boolean {
  const found: SchemaIssue[] = [];
  check(value, path, found);
  return found.length === 0;
}

/** What alternatives there are, where each says it in a word. */
function alternatives(said: unknown): string {
  const named = (Array.isArray(said) ? said : []).map((each: unknown) => {
    if (!isPlainObject(each)) return undefined;
    if (Object.hasOwn(each, "const")) return JSON.stringify(each["const"]);
    return typeof each["type"] === "string" ? each["type"] : undefined;
  });
  if (named.includes(undefined)) return "fits none of the alternatives";
  return `expected ${[...new Set(named)].join(" or ")}`;
}

function listOf(said: unknown, at: string): readonly unknown[] {
  if (Array.isArray(said)) return said;
  throw unfit(at, `is ${describeValue(said)}, not a list`);
}

function textsOf(said: unknown, at: string): readonly string[] {
  const list = listOf(said, at);
  if (list.every((each) => typeof each === "string")) return list;
  throw unfit(at, "has something else than names in it");
}

function patternOf(said: unknown, at: string): RegExp {
  if (typeof said !== "string") throw unfit(at, `is ${describeValue(said)}, not a pattern`);
  try {
    return new RegExp(said, "u");
  } catch (cause) {
    throw unfit(at, `is ${describeValue(said)}, which is no pattern`, cause);
  }
}

function add(found: SchemaIssue[], path: readonly string[], message: string): void {
  if (found.length < mostIssues) found.push({ path: path.join("."), message });
}

function anything(): void {
  // Everything fits.
}

function unfit(at: string, why: string, cause?: unknown): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `the JSON Schema of a tool's arguments${at === "" ? "" : `, at "${at}",`} ${why}`,
    next: "Mend it, or give a validator that knows it: jsonSchemaInput(schema, { validator })",
    cause,
  });
}
