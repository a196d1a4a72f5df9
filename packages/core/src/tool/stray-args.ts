/** What arguments have and the schema that the model was shown does not: keys that nothing names, nulls where none may be. */
import { isPlainObject, type Json, type JsonObject } from "../base/json.ts";
import type { SchemaIssue } from "../base/schema.ts";
import { checkOf, resolveRef } from "./json-schema.ts";

/** What was found, each with its path. */
export interface Strays {
  /** Keys that no part of the schema names, where it is not open. */
  readonly unknown: SchemaIssue[];
  /** Nulls where the schema allows none. */
  readonly nulls: SchemaIssue[];
}

/** Look through arguments, at every depth. */
export function straysIn(schema: JsonObject, args: unknown): Strays {
  const found: Strays = { unknown: [], nulls: [] };
  visitorOf(schema, schema)?.(args, undefined, undefined, found);
  return found;
}

/** The way to a value: made into text only where something is found. */
interface Way {
  readonly up: Way | undefined;
  readonly key: string | number;
}

/** Looks at the value that stands under `key` at the end of a way. */
type Visitor = (value: unknown, up: Way | undefined, key: string | number | undefined, found: Strays) => void;

const visitors: WeakMap<object, Visitor | null> = new WeakMap();

/** What looks at values of a schema, made once; nothing where there is nothing to look for. */
function visitorOf(root: JsonObject, schema: unknown): Visitor | null {
  if (!isPlainObject(schema)) return null;
  const known = visitors.get(schema);
  if (known !== undefined) return known;
  const { $ref, anyOf, oneOf, allOf } = schema as JsonObject;
  const combines = [$ref, anyOf, oneOf, allOf].some((word) => word !== undefined);
  const made = combines ? combined(root, schema as JsonObject) : plain(root, schema as JsonObject);
  visitors.set(schema, made);
  return made;
}

function plain(root: JsonObject, schema: JsonObject): Visitor | null {
  const { type, properties, additionalProperties, items, prefixItems } = schema;
  const takesNull = typeof type !== "string" || type === "null";
  const parts = isPlainObject(properties)
    ? new Map(Object.entries(properties).map(([name, part]) => [name, visitorOf(root, part)]))
    : undefined;
  const open = parts === undefined || isOpen(schema);
  const rest = visitorOf(root, additionalProperties);
  const item = visitorOf(root, items);
  const places = Array.isArray(prefixItems) ? prefixItems.map((place) => visitorOf(root, place)) : [];
  if (takesNull && parts === undefined && rest === null && item === null && places.length === 0) return null;
  return (value, up, key, found) => {
    if (typeof value !== "object") return;
    if (value === null) {
      if (!takesNull) found.nulls.push({ path: textOf(up, key), message: `expected ${type}, received null` });
      return;
    }
    const here = key === undefined ? up : { up, key };
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++)
        (index < places.length ? places[index] : item)?.(value[index], here, index, found);
      return;
    }
    for (const name of Object.keys(value)) {
      const part = parts?.get(name);
      if (part !== undefined) part?.(value[name as keyof typeof value], here, name, found);
      else if (open) rest?.(value[name as keyof typeof value], here, name, found);
      else found.unknown.push({ path: textOf(here, name), message: "unknown argument" });
    }
  };
}

/** References, alternatives and schemas that hold together: which of them apply is seen from the value. */
function combined(root: JsonObject, schema: JsonObject): Visitor {
  return (value, up, key, found) => {
    if (value === null && schema["$ref"] === undefined) return;
    const parts = partsFor(root, schema, value)?.filter(saysSomething) ?? [];
    const [only] = parts;
    if (parts.length === 1) visitorOf(root, only)?.(value, up, key, found);
    else if (parts.length > 1) visitTogether(root, parts, value, key === undefined ? up : { up, key }, found);
  };
}

/** A value to which several schemas apply: what one of them names is known, what one leaves open is open. */
function visitTogether(
  root: JsonObject,
  parts: readonly JsonObject[],
  value: unknown,
  here: Way | undefined,
  found: Strays,
): void {
  if (!isPlainObject(value)) {
    for (const part of parts) visitorOf(root, part)?.(value, here?.up, here?.key, found);
    return;
  }
  const open = parts.some((part) => part["properties"] === undefined || isOpen(part));
  for (const name of Object.keys(value)) {
    const naming = parts.flatMap(({ properties }) =>
      isPlainObject(properties) && Object.hasOwn(properties, name) ? [properties[name]] : [],
    );
    for (const named of naming) visitorOf(root, named)?.(value[name], here, name, found);
    if (naming.length > 0) continue;
    if (!open) found.unknown.push({ path: textOf(here, name), message: "unknown argument" });
    else for (const part of parts) visitorOf(root, part["additionalProperties"])?.(value[name], here, name, found);
  }
}

function saysSomething({ properties, additionalProperties, items, prefixItems }: JsonObject): boolean {
  return [properties, additionalProperties, items, prefixItems].some((word) => word !== undefined);
}

function isOpen({ additionalProperties, patternProperties }: JsonObject): boolean {
  return patternProperties !== undefined || (additionalProperties !== undefined && additionalProperties !== false);
}

/**
 * The schemas that apply to a value together: of alternatives the first that it fits, as zod takes it. Undefined where it
 * fits none, which is for the parser to say.
 */
function partsFor(root: JsonObject, schema: JsonObject, value: unknown): readonly JsonObject[] | undefined {
  const { $ref: ref, anyOf, oneOf, allOf, ...own } = schema;
  if (typeof ref === "string") {
    const target = resolveRef(root, ref);
    return isPlainObject(target) ? partsFor(root, target as JsonObject, value) : [];
  }
  const alternatives = anyOf ?? oneOf;
  if (alternatives === undefined && allOf === undefined) return [schema];
  const parts: JsonObject[] = saysSomething(own) ? [ownPart(schema, own)] : [];
  for (const each of listOf(allOf)) {
    const more = partsFor(root, each, value);
    if (more === undefined) return undefined;
    parts.push(...more);
  }
  if (alternatives === undefined) return parts;
  const chosen = listOf(alternatives).find((each) => fits(root, each, value));
  const more = chosen === undefined ? undefined : partsFor(root, chosen, value);
  return more === undefined ? undefined : [...parts, ...more];
}

const ownParts: WeakMap<JsonObject, JsonObject> = new WeakMap();

/** What a schema says beside its alternatives, as one object each time. */
function ownPart(schema: JsonObject, own: JsonObject): JsonObject {
  const known = ownParts.get(schema) ?? own;
  ownParts.set(schema, known);
  return known;
}

function listOf(schemas: Json | undefined): readonly JsonObject[] {
  return Array.isArray(schemas) ? schemas.filter((each): each is JsonObject => isPlainObject(each)) : [];
}

const checks: WeakMap<JsonObject, (value: unknown) => readonly SchemaIssue[]> = new WeakMap();

function fits(root: JsonObject, schema: JsonObject, value: unknown): boolean {
  let check = checks.get(schema);
  if (check === undefined) {
    check = checkOf(schema, root);
    checks.set(schema, check);
  }
  return check(value).length === 0;
}

function textOf(up: Way | undefined, key: string | number | undefined): string {
  const keys = key === undefined ? [] : [key];
  for (let way = up; way !== undefined; way = way.up) keys.unshift(way.key);
  return keys.join(".");
}
