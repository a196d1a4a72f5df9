/**
 * Schemas of a document as JSON Schema 2020-12. What OpenAPI 3.0 says in its own way is said in that of JSON Schema; a schema
 * that is referred to once stands where it is used, one that is used more often or contains itself stands under `$defs`.
 */
import type { Json, JsonObject } from "@statewright/core";
import { isObject } from "../protocol.ts";
import { type Document, followed, listOf, type Part, partAt, unfitPart } from "./document.ts";

/** Reads the schemas of one operation, which share their definitions. */
export interface SchemaReader {
  /** A schema as it stands in the document, made ready; its references are filled in by `object`. */
  readonly read: (schema: unknown, place: string) => Json;
  /** The schema of an object with these members, and with the definitions of all that was read. */
  readonly object: (properties: Readonly<Record<string, Json>>, required: readonly string[]) => JsonObject;
}

const single = new Set([
  "not",
  "if",
  "then",
  "else",
  "items",
  "contains",
  "additionalProperties",
  "propertyNames",
  "unevaluatedItems",
  "unevaluatedProperties",
  "contentSchema",
]);
const lists = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const maps = new Set(["properties", "patternProperties", "dependentSchemas"]);
/** Words of OpenAPI that no model has a use for, and those that would move where references begin. */
const dropped = new Set(["xml", "externalDocs", "discriminator", "$schema", "$id", "$anchor"]);
/** What may stand beside a reference without narrowing what it refers to. */
const notes = new Set(["description", "title", "deprecated", "default", "examples"]);

const deepest = 100;

/** How deep a schema may be once what it refers to stands in it. */
const deepestPlaced = 500;

/** A schema that is referred to. */
interface Definition {
  readonly name: string;
  uses: number;
  /** Whether it can stand in the place of a reference. */
  isMovable: boolean;
  schema: Json;
}

/** A reader for one operation, `where` being its name. */
export function schemaReader(document: Document, where: string): SchemaReader {
  const byRef = new Map<string, Definition>();
  const taken = new Set<string>();
  const pending: { readonly definition: Definition; readonly ref: string; readonly place: string }[] = [];
  /** The references that were read, each an object of its own: data that looks like one is none. */
  const references = new Map<object, Definition>();

  const refer = (ref: string, beside: JsonObject, place: string): Json => {
    let definition = byRef.get(ref);
    if (definition === undefined) {
      definition = { name: freeName(ref, taken), uses: 0, isMovable: true, schema: true };
      byRef.set(ref, definition);
      pending.push({ definition, ref, place });
    }
    definition.uses += 1;
    definition.isMovable &&= definition.uses === 1 && Object.keys(beside).every((word) => notes.has(word));
    const reference = { $ref: `#/$defs/${definition.name}`, ...beside };
    references.set(reference, definition);
    return reference;
  };

  const read = (schema: unknown, place: string, depth: number): Json => {
    if (typeof schema === "boolean") return schema;
    if (!isObject(schema)) throw unfitPart(document, place, "has a schema that is none");
    if (depth > deepest) throw unfitPart(document, place, `has a schema of more than ${deepest} levels`);
    const within = (inner: unknown): Json => read(inner, place, depth + 1);
    const { $ref, ...rest } = withoutReadOnly(document, upgraded(schema), place);
    const parts = Object.entries(rest).flatMap(([word, said]): readonly (readonly [string, Json])[] => {
      if (dropped.has(word) || word.startsWith("x-")) return [];
      if (single.has(word)) return [[word, Array.isArray(said) ? said.map(within) : within(said)]];
      if (lists.has(word)) return [[word, listOf(said).map(within)]];
      if (maps.has(word) && isObject(said))
        return [[word, Object.fromEntries(Object.entries(said).map(([name, inner]) => [name, within(inner)]))]];
      return [[word, said as Json]];
    });
    const said: JsonObject = Object.fromEntries(parts);
    return typeof $ref === "string" ? refer($ref, said, place) : said;
  };

  const readDefinitions = (): void => {
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
      const { definition, ref, place } = next;
      definition.schema = read(partAt(document, ref, place), place, 0);
      definition.isMovable &&= isObject(definition.schema);
    }
  };

  /** With what is referred to once in its place. No such definition contains itself: it would be referred to twice. */
  const placed = (schema: Json, depth: number): Json => {
    if (depth > deepestPlaced) throw unfitPart(document, where, `has a schema of more than ${deepestPlaced} levels`);
    if (Array.isArray(schema)) return schema.map((each) => placed(each, depth + 1));
    if (!isObject(schema)) return schema;
    const definition = references.get(schema);
    if (definition?.isMovable === true) {
      const { $ref: _ref, ...beside } = schema as JsonObject;
      const target = placed(definition.schema, depth + 1);
      return Object.keys(beside).length === 0 ? target : { ...(target as JsonObject), ...beside };
    }
    return placedIn(schema as JsonObject, depth);
  };
  const placedIn = (schemas: JsonObject, depth = 0): JsonObject =>
    Object.fromEntries(Object.entries(schemas).map(([word, said]) => [word, placed(said, depth + 1)]));

  return {
    read: (schema, place) => read(schema, place, 0),
    object: (properties, required) => {
      readDefinitions();
      const named = [...byRef.values()].filter(({ isMovable }) => !isMovable);
      return {
        type: "object",
        properties: placedIn(properties),
        ...(required.length === 0 ? {} : { required }),
        additionalProperties: false,
        ...(named.length === 0
          ? {}
          : { $defs: placedIn(Object.fromEntries(named.map(({ name, schema }) => [name, schema]))) }),
      };
    },
  };
}

/** What the server alone sets is not sent, and not asked for. */
function withoutReadOnly(document: Document, schema: Part, place: string): Part {
  const { properties, required } = schema;
  if (!isObject(properties)) return schema;
  const isReadOnly = (property: unknown): boolean => {
    if (!isObject(property)) return false;
    if (property["readOnly"] === true) return true;
    return typeof property["$ref"] === "string" && followed(document, property, place)["readOnly"] === true;
  };
  const gone = new Set(Object.keys(properties).filter((name) => isReadOnly(properties[name])));
  if (gone.size === 0) return schema;
  return {
    ...schema,
    properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !gone.has(name))),
    ...(Array.isArray(required) ? { required: required.filter((name) => !gone.has(name)) } : {}),
  };
}

/** One level of a schema of OpenAPI 3.0 in the words of JSON Schema. Documents of 3.1 hold such words too, by mistake. */
function upgraded(schema: Part): Part {
  const { nullable, example, exclusiveMinimum, exclusiveMaximum, ...rest } = schema;
  const bounded = {
    ...rest,
    ...bound("minimum", "exclusiveMinimum", rest["minimum"], exclusiveMinimum),
    ...bound("maximum", "exclusiveMaximum", rest["maximum"], exclusiveMaximum),
    ...(example === undefined || rest["examples"] !== undefined ? {} : { examples: [example] }),
    ...(rest["format"] === "byte" ? { contentEncoding: "base64" } : {}),
  };
  const plain = Object.fromEntries(Object.entries(bounded).filter(([, said]) => said !== undefined));
  return nullable === true ? orNull(plain) : plain;
}

/** In 3.0 a bound is made exclusive by a flag beside it. */
function bound(plain: string, exclusive: string, limit: unknown, flag: unknown): Part {
  if (flag === undefined || flag === false) return {};
  return flag === true ? { [plain]: undefined, [exclusive]: limit } : { [exclusive]: flag };
}

function orNull(schema: Part): Part {
  const { type, description, title, default: preset, ...rest } = schema;
  if (type !== undefined) return { ...schema, type: [...(Array.isArray(type) ? type : [type]), "null"] };
  if (!["$ref", "allOf", "anyOf", "oneOf"].some((word) => word in rest)) return schema;
  const said = Object.entries({ title, description, default: preset }).filter(([, each]) => each !== undefined);
  return { ...Object.fromEntries(said), anyOf: [rest, { type: "null" }] };
}

/** The last word of a reference; with a number where another reference ends in the same one. */
function freeName(ref: string, taken: Set<string>): string {
  const word = (ref.split("/").at(-1) ?? "").replace(/[^A-Za-z0-9_-]+/g, "_") || "schema";
  let name = word;
  for (let count = 2; taken.has(name); count++) name = `${word}_${count}`;
  taken.add(name);
  return name;
}
