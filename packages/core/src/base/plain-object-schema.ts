/** Schemas of the engine's own: objects of plain parts, and the JSON Schema that says the same to who fills them in. */
import { isPlainObject, type JsonObject } from "./json.ts";
import type { Schema, SchemaResult } from "./schema.ts";

type Part = "boolean" | "string" | "object" | "anything";

interface Parts {
  readonly [name: string]: Part;
}

/** A schema that says of itself, as Standard JSON Schema, what it takes. */
interface Described<Value> extends Schema<Value> {
  readonly "~standard": Schema<Value>["~standard"] & { readonly jsonSchema: { readonly input: () => JsonObject } };
}

/** An object with these parts and no others. */
export function plainObject<Value extends object>(required: Parts, optional: Parts): Described<Value> {
  const parts = { ...required, ...optional };
  const said: JsonObject = {
    type: "object",
    properties: Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, saidOf[part]])),
    required: Object.keys(required),
    additionalProperties: false,
  };
  return described(said, (value) => {
    if (!isPlainObject(value)) return [{ path: [], message: "expected an object" }];
    const unknown = Object.keys(value).filter((name) => !Object.hasOwn(parts, name));
    const unfit = Object.entries(parts).filter(([name, part]) => {
      const given = value[name];
      return given === undefined ? Object.hasOwn(required, name) : !fits(part, given);
    });
    return [
      ...unfit.map(([name, part]) => ({ path: [name], message: `expected ${articles[part]}` })),
      ...unknown.map((name) => ({ path: [name], message: "unknown key" })),
    ];
  });
}

/** True, false, or one of such objects. */
export function booleanOr<Value extends object>(...objects: readonly Described<Value>[]): Described<Value | boolean> {
  const said = objects.map((object) => object["~standard"].jsonSchema.input());
  return described({ anyOf: [{ type: "boolean" }, ...said] }, (value) => {
    if (typeof value === "boolean") return [];
    if (!isPlainObject(value))
      return [{ path: [], message: `expected true, false or ${said.map(shapeOf).join(" or ")}` }];
    const issues = objects.map((object) => (object["~standard"].validate(value) as SchemaResult<Value>).issues ?? []);
    // What is wrong is told by the object that was most likely meant.
    return issues.reduce((fewest, each) => (each.length < fewest.length ? each : fewest));
  });
}

/** As people write it: `{ approved, reason? }`. */
function shapeOf({ properties, required }: JsonObject): string {
  const needed = Array.isArray(required) ? required : [];
  const names = Object.keys(isPlainObject(properties) ? properties : {});
  return `{ ${names.map((name) => (needed.includes(name) ? name : `${name}?`)).join(", ")} }`;
}

const saidOf: Readonly<Record<Part, JsonObject>> = {
  boolean: { type: "boolean" },
  string: { type: "string" },
  object: { type: "object", propertyNames: { type: "string" }, additionalProperties: {} },
  anything: {},
};

const articles: Readonly<Record<Part, string>> = {
  boolean: "true or false",
  string: "a text",
  object: "an object",
  anything: "a value",
};

function fits(part: Part, given: unknown): boolean {
  if (part === "anything") return true;
  return part === "object" ? isPlainObject(given) : typeof given === part;
}

function described<Value>(
  said: JsonObject,
  issuesOf: (value: unknown) => NonNullable<SchemaResult<Value>["issues"]>,
): Described<Value> {
  return {
    "~standard": {
      version: 1,
      vendor: "statewright",
      validate: (value) => {
        const issues = issuesOf(value);
        return issues.length > 0 ? { issues } : { value: value as Value };
      },
      jsonSchema: { input: () => said },
    },
  };
}
