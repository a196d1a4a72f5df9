/** Random JSON: values that fit a JSON Schema, hostile values, and changes of valid values. */
import type { Chance } from "@statewright/testing";

/** JSON Schema, as far as the generator reads it. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** Sources of random JSON. */
export interface JsonSources {
  readonly chance: Chance;
  /** Returns a text that the server may know, such as the id of a thread. */
  readonly pickText: (name: string) => string;
  /** Schemas that `$ref` names. */
  readonly schemas: Readonly<Record<string, unknown>>;
}

const hostileTexts: readonly string[] = [
  "",
  " ",
  "\u0000",
  "\u2028\n\r",
  "😀".repeat(50),
  "a\u0301",
  "null",
  "-1",
  "1e999",
  "../../etc/passwd",
  "%2e%2e%2f",
  "'; DROP TABLE threads; --",
  "$(id)",
  "__proto__",
  "constructor",
  "toString",
  "t.acme.t1",
  "b1.1:1:model",
  "9999999999999999",
  "2026-13-45T99:99:99Z",
  "data:text/html;base64,AAAA",
  "x".repeat(300),
  "x".repeat(5_000),
];
const hostileNumbers: readonly number[] = [0, -1, 1.5, -0, 1e21, 2 ** 53, -(2 ** 53), 2 ** 31, 1e-7, Number.MAX_VALUE];

/** Creates a value of any type, seldom a large or a deep one. */
export function createHostileValue(chance: Chance): unknown {
  if (chance.flip(0.02)) return "x".repeat(200_000);
  if (chance.flip(0.02)) return createDeepValue(20 + chance.getInteger(100));
  if (chance.flip(0.02)) return Array.from({ length: 2_000 }, (_, index) => index);
  const kind = chance.getInteger(7);
  if (kind === 0) return null;
  if (kind === 1) return chance.flip(0.5);
  if (kind === 2) return chance.pick(hostileNumbers);
  if (kind <= 4) return chance.pick(hostileTexts);
  if (kind === 5) return chance.flip(0.5) ? [] : [createHostileValue(chance)];
  return chance.flip(0.3) ? {} : { [chance.pick(hostileTexts)]: createHostileValue(chance) };
}

function createDeepValue(levels: number): unknown {
  let value: unknown = "deep";
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { inner: value };
  return value;
}

/** Creates a hostile text. */
export function createHostileText(chance: Chance): string {
  return chance.pick(hostileTexts);
}

/** Creates a value that mostly fits the schema. `name` is the name of the property. */
export function createFromSchema(schema: unknown, name: string, sources: JsonSources, levels = 6): unknown {
  const { chance, schemas } = sources;
  if (!isObject(schema) || levels === 0) return createHostileValue(chance);
  const { $ref: reference, type } = schema;
  const next = (inner: unknown, innerName = name): unknown => createFromSchema(inner, innerName, sources, levels - 1);
  if (typeof reference === "string") return next(schemas[reference.split("/").at(-1) ?? ""]);
  const options = schema["anyOf"] ?? schema["oneOf"];
  if (Array.isArray(options)) return next(chance.pick(options));
  if (Array.isArray(schema["allOf"])) return Object.assign({}, ...schema["allOf"].map((inner) => next(inner)));
  if ("const" in schema) return schema["const"];
  if (Array.isArray(schema["enum"])) return chance.pick(schema["enum"]);
  switch (Array.isArray(type) ? chance.pick(type) : type) {
    case "object":
      return createObject(schema, sources, levels);
    case "array":
      return Array.from({ length: chance.getInteger(3) }, () => next(schema["items"]));
    case "string":
      return sources.pickText(name);
    case "integer":
    case "number":
      return chance.flip(0.8) ? chance.getInteger(20) : chance.pick(hostileNumbers);
    case "boolean":
      return chance.flip(0.5);
    case "null":
      return null;
    default:
      return createHostileValue(chance);
  }
}

function createObject(schema: JsonSchema, sources: JsonSources, levels: number): Record<string, unknown> {
  const { chance } = sources;
  const required = new Set(Array.isArray(schema["required"]) ? schema["required"] : []);
  const created: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(isObject(schema["properties"]) ? schema["properties"] : {}))
    if (chance.flip(required.has(key) ? 0.97 : 0.4)) created[key] = createFromSchema(inner, key, sources, levels - 1);
  const more = schema["additionalProperties"];
  if (isObject(more) && chance.flip(0.7))
    created[sources.pickText("key")] = createFromSchema(more, "value", sources, levels - 1);
  return created;
}

/** Changes one place of a value: another type, a missing key, an unknown key, or a hostile text. */
export function mutateJson(value: unknown, chance: Chance): unknown {
  if (Array.isArray(value) && value.length > 0 && chance.flip(0.8)) {
    const at = chance.getInteger(value.length);
    return chance.flip(0.2)
      ? [...value, value[at]]
      : value.map((item, index) => (index === at ? mutateJson(item, chance) : item));
  }
  if (isObject(value) && Object.keys(value).length > 0 && chance.flip(0.8)) {
    const key = chance.pick(Object.keys(value));
    if (chance.flip(0.15)) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));
    if (chance.flip(0.15)) return { ...value, [createHostileText(chance)]: createHostileValue(chance) };
    return { ...value, [key]: mutateJson(value[key], chance) };
  }
  return createHostileValue(chance);
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
