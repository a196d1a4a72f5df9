/** Built-in schemas: objects with plain parts, each with an equivalent JSON Schema. */
import { isPlainObject, type JsonObject } from "./json.ts";
import type { Schema, SchemaResult } from "./schema.ts";

type Part = "boolean" | "string" | "object" | "anything";

interface Parts {
  readonly [name: string]: Part;
}

/** A schema with its input as JSON Schema (Standard JSON Schema). */
interface DescribedSchema<Value> extends Schema<Value> {
  readonly "~standard": Schema<Value>["~standard"] & { readonly jsonSchema: { readonly input: () => JsonObject } };
}

/** Creates a schema of an object with these parts; unknown keys are refused. */
export function createPlainObjectSchema<Value extends object>(
  required: Parts,
  optional: Parts,
): DescribedSchema<Value> {
  const parts = { ...required, ...optional };
  const jsonSchema: JsonObject = {
    type: "object",
    properties: Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, partSchemas[part]])),
    required: Object.keys(required),
    additionalProperties: false,
  };
  return createDescribedSchema(jsonSchema, (value) => {
    if (!isPlainObject(value)) return [{ path: [], message: "expected an object" }];
    const unknown = Object.keys(value).filter((name) => !Object.hasOwn(parts, name));
    const invalid = Object.entries(parts).filter(([name, part]) => {
      const partValue = value[name];
      return partValue === undefined ? Object.hasOwn(required, name) : !matchesPart(part, partValue);
    });
    return [
      ...invalid.map(([name, part]) => ({ path: [name], message: `expected ${partDescriptions[part]}` })),
      ...unknown.map((name) => ({ path: [name], message: "unknown key" })),
    ];
  });
}

/** Creates a schema of a boolean or an object of these schemas. */
export function createBooleanOrSchema<Value extends object>(
  ...objects: readonly DescribedSchema<Value>[]
): DescribedSchema<Value | boolean> {
  const jsonSchemas = objects.map((object) => object["~standard"].jsonSchema.input());
  return createDescribedSchema({ anyOf: [{ type: "boolean" }, ...jsonSchemas] }, (value) => {
    if (typeof value === "boolean") return [];
    if (!isPlainObject(value))
      return [{ path: [], message: `expected true, false or ${jsonSchemas.map(describeShape).join(" or ")}` }];
    const issues = objects.map((object) => (object["~standard"].validate(value) as SchemaResult<Value>).issues ?? []);
    // Report the issues of the closest object schema: the schema with the fewest issues.
    return issues.reduce((fewest, each) => (each.length < fewest.length ? each : fewest));
  });
}

/** Formats the keys of an object schema as `{ approved, reason? }`. */
function describeShape({ properties, required }: JsonObject): string {
  const requiredNames = Array.isArray(required) ? required : [];
  const names = Object.keys(isPlainObject(properties) ? properties : {});
  return `{ ${names.map((name) => (requiredNames.includes(name) ? name : `${name}?`)).join(", ")} }`;
}

const partSchemas: Readonly<Record<Part, JsonObject>> = {
  boolean: { type: "boolean" },
  string: { type: "string" },
  object: { type: "object", propertyNames: { type: "string" }, additionalProperties: {} },
  anything: {},
};

const partDescriptions: Readonly<Record<Part, string>> = {
  boolean: "true or false",
  string: "a text",
  object: "an object",
  anything: "a value",
};

function matchesPart(part: Part, value: unknown): boolean {
  if (part === "anything") return true;
  return part === "object" ? isPlainObject(value) : typeof value === part;
}

function createDescribedSchema<Value>(
  jsonSchema: JsonObject,
  listIssues: (value: unknown) => NonNullable<SchemaResult<Value>["issues"]>,
): DescribedSchema<Value> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value) => {
        const issues = listIssues(value);
        return issues.length > 0 ? { issues } : { value: value as Value };
      },
      jsonSchema: { input: () => jsonSchema },
    },
  };
}
