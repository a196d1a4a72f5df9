/**
 * Conversion of OpenAPI schemas to JSON Schema 2020-12. Keywords of OpenAPI 3.0 are converted. A schema referenced
 * once is inlined; a schema referenced several times or recursively goes under `$defs`.
 */
import type { Json, JsonObject } from "@statewright/core";
import { isJsonObject } from "@statewright/json-schema";
import { createPartError, type Document, findPart, type Part, resolveRefs, toList } from "./document.ts";

/** Reader for the schemas of an operation, with shared definitions. */
export interface SchemaReader {
  /** Converts a schema of the document; `object` inlines its references. */
  readonly read: (schema: unknown, place: string) => Json;
  /** Creates an object schema with these properties, and with the definitions of all schemas read. */
  readonly toObjectSchema: (properties: Readonly<Record<string, Json>>, required: readonly string[]) => JsonObject;
}

const schemaKeywords = new Set([
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
const schemaListKeywords = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const schemaMapKeywords = new Set(["properties", "patternProperties", "dependentSchemas"]);
/** OpenAPI keywords without meaning for a model, and keywords that would change the base of references. */
const droppedKeywords = new Set(["xml", "externalDocs", "discriminator", "$schema", "$id", "$anchor"]);
/** Annotations: siblings of a `$ref` that do not narrow the referenced schema. */
const annotationKeywords = new Set(["description", "title", "deprecated", "default", "examples"]);

const maxDepth = 100;

/** Maximum depth of a schema after inlining. */
const maxInlinedDepth = 500;

/** Referenced schema. */
interface Definition {
  readonly name: string;
  uses: number;
  /** True if the definition can replace its reference. */
  isInlinable: boolean;
  schema: Json;
}

/** Creates a reader for a single operation with the name `where`. */
export function createSchemaReader(document: Document, operationName: string): SchemaReader {
  const byRef = new Map<string, Definition>();
  const usedNames = new Set<string>();
  const pending: { readonly definition: Definition; readonly ref: string; readonly location: string }[] = [];
  /** Reference objects by identity: a data object with a `$ref` key is not a reference. */
  const references = new Map<object, Definition>();

  const createReference = (ref: string, siblings: JsonObject, location: string): Json => {
    let definition = byRef.get(ref);
    if (definition === undefined) {
      definition = { name: createFreeName(ref, usedNames), uses: 0, isInlinable: true, schema: true };
      byRef.set(ref, definition);
      pending.push({ definition, ref, location });
    }
    definition.uses += 1;
    definition.isInlinable &&=
      definition.uses === 1 && Object.keys(siblings).every((word) => annotationKeywords.has(word));
    const reference = { $ref: `#/$defs/${definition.name}`, ...siblings };
    references.set(reference, definition);
    return reference;
  };

  const read = (schema: unknown, location: string, depth: number): Json => {
    if (typeof schema === "boolean") return schema;
    if (!isJsonObject(schema)) throw createPartError(document, location, "has an invalid schema");
    if (depth > maxDepth) throw createPartError(document, location, `has a schema deeper than ${maxDepth} levels`);
    const readInner = (inner: unknown): Json => read(inner, location, depth + 1);
    const { $ref, ...rest } = removeReadOnly(document, upgradeSchema(schema), location);
    const parts = Object.entries(rest).flatMap(([keyword, value]): readonly (readonly [string, Json])[] => {
      if (droppedKeywords.has(keyword) || keyword.startsWith("x-")) return [];
      if (schemaKeywords.has(keyword))
        return [[keyword, Array.isArray(value) ? value.map(readInner) : readInner(value)]];
      if (schemaListKeywords.has(keyword)) return [[keyword, toList(value).map(readInner)]];
      if (schemaMapKeywords.has(keyword) && isJsonObject(value))
        return [[keyword, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, readInner(inner)]))]];
      return [[keyword, value as Json]];
    });
    const said: JsonObject = Object.fromEntries(parts);
    return typeof $ref === "string" ? createReference($ref, said, location) : said;
  };

  const readDefinitions = (): void => {
    for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
      const { definition, ref, location } = next;
      definition.schema = read(findPart(document, ref, location), location, 0);
      definition.isInlinable &&= isJsonObject(definition.schema);
    }
  };

  /**
   * Inlines the schemas referenced once. Terminates: a recursive definition is referenced at least twice, and not
   * inlined.
   */
  const inlineRefs = (schema: Json, depth: number): Json => {
    if (depth > maxInlinedDepth)
      throw createPartError(document, operationName, `has a schema deeper than ${maxInlinedDepth} levels`);
    if (Array.isArray(schema)) return schema.map((each) => inlineRefs(each, depth + 1));
    if (!isJsonObject(schema)) return schema;
    const definition = references.get(schema);
    if (definition?.isInlinable === true) {
      const { $ref: _ref, ...siblings } = schema as JsonObject;
      const target = inlineRefs(definition.schema, depth + 1);
      return Object.keys(siblings).length === 0 ? target : { ...(target as JsonObject), ...siblings };
    }
    return inlineMembers(schema as JsonObject, depth);
  };
  const inlineMembers = (schemas: JsonObject, depth = 0): JsonObject =>
    Object.fromEntries(Object.entries(schemas).map(([word, member]) => [word, inlineRefs(member, depth + 1)]));

  return {
    read: (schema, place) => read(schema, place, 0),
    toObjectSchema: (properties, required) => {
      readDefinitions();
      const shared = [...byRef.values()].filter(({ isInlinable }) => !isInlinable);
      return {
        type: "object",
        properties: inlineMembers(properties),
        ...(required.length === 0 ? {} : { required }),
        additionalProperties: false,
        ...(shared.length === 0
          ? {}
          : { $defs: inlineMembers(Object.fromEntries(shared.map(({ name, schema }) => [name, schema]))) }),
      };
    },
  };
}

/** Removes read-only properties, which only the server sets. */
function removeReadOnly(document: Document, schema: Part, location: string): Part {
  const { properties, required } = schema;
  if (!isJsonObject(properties)) return schema;
  const isReadOnly = (property: unknown): boolean => {
    if (!isJsonObject(property)) return false;
    if (property["readOnly"] === true) return true;
    return typeof property["$ref"] === "string" && resolveRefs(document, property, location)["readOnly"] === true;
  };
  const readOnlyNames = new Set(Object.keys(properties).filter((name) => isReadOnly(properties[name])));
  if (readOnlyNames.size === 0) return schema;
  return {
    ...schema,
    properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !readOnlyNames.has(name))),
    ...(Array.isArray(required) ? { required: required.filter((name) => !readOnlyNames.has(name)) } : {}),
  };
}

/**
 * Converts a single level of an OpenAPI 3.0 schema to JSON Schema. Also applied to 3.1 documents, which often contain
 * 3.0 keywords by mistake.
 */
function upgradeSchema(schema: Part): Part {
  const { nullable, example, exclusiveMinimum, exclusiveMaximum, ...rest } = schema;
  const converted = {
    ...rest,
    ...convertBound("minimum", "exclusiveMinimum", rest["minimum"], exclusiveMinimum),
    ...convertBound("maximum", "exclusiveMaximum", rest["maximum"], exclusiveMaximum),
    ...(example === undefined || rest["examples"] !== undefined ? {} : { examples: [example] }),
    ...(rest["format"] === "byte" ? { contentEncoding: "base64" } : {}),
  };
  const withoutUndefined = Object.fromEntries(Object.entries(converted).filter(([, value]) => value !== undefined));
  return nullable === true ? allowNull(withoutUndefined) : withoutUndefined;
}

/** Converts a 3.0 bound with an exclusive flag. */
function convertBound(plain: string, exclusive: string, limit: unknown, flag: unknown): Part {
  if (flag === undefined || flag === false) return {};
  return flag === true ? { [plain]: undefined, [exclusive]: limit } : { [exclusive]: flag };
}

function allowNull(schema: Part): Part {
  const { type, description, title, default: preset, ...rest } = schema;
  if (type !== undefined) return { ...schema, type: [...(Array.isArray(type) ? type : [type]), "null"] };
  if (!["$ref", "allOf", "anyOf", "oneOf"].some((word) => word in rest)) return schema;
  const annotations = Object.entries({ title, description, default: preset }).filter(([, each]) => each !== undefined);
  return { ...Object.fromEntries(annotations), anyOf: [rest, { type: "null" }] };
}

/** Creates a unique definition name from the last segment of a reference, with a number if needed. */
function createFreeName(ref: string, usedNames: Set<string>): string {
  const word = (ref.split("/").at(-1) ?? "").replace(/[^A-Za-z0-9_-]+/g, "_") || "schema";
  let name = word;
  for (let count = 2; usedNames.has(name); count++) name = `${word}_${count}`;
  usedNames.add(name);
  return name;
}
