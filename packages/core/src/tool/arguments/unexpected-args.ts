/** What arguments have and the schema that the model was shown does not: keys that nothing names, nulls where none may be. */
import { isPlainObject, type Json, type JsonObject } from "../../base/json.ts";
import type { SchemaIssue } from "../../base/schema.ts";
import { checkOf, resolveRef } from "./json-schema.ts";

/** What was found, each with its path. */
export interface Strays {
  /** Keys that no part of the schema names, where it is not open. */
  readonly unknown: readonly SchemaIssue[];
  /** Nulls where the schema allows none. */
  readonly nulls: readonly SchemaIssue[];
}

/** So many of a kind are told: a path may be long, and each is a text of its own. */
const mostTold = 100;

/** Look through arguments, at every depth. */
export function straysIn(schema: JsonObject, args: unknown): Strays {
  const found: Found = { unknown: [], nulls: [], known: new Map() };
  visitorOf(schema, schema)?.(args, undefined, undefined, found);
  return {
    unknown: found.unknown
      .slice(0, mostTold)
      .map(({ within, key }) => ({ path: textOf(within, key), message: "unknown argument" })),
    nulls: found.nulls,
  };
}

/** What is found on the way. */
interface Found {
  readonly unknown: Unknown[];
  readonly nulls: SchemaIssue[];
  /** What combined schemas have found in values: alternatives share parts, and deep values would be looked at for ever. */
  readonly known: Map<object, Map<unknown, Pick<Found, "unknown" | "nulls">>>;
}

/** A key that nothing names. */
interface Unknown {
  readonly within: Way;
  readonly key: string;
}

/** The way to a list or an object, from the arguments on: made into text only where something is told. */
interface Way {
  readonly up: Way | undefined;
  readonly key: string | number | undefined;
  readonly value: object;
}

/** Looks at the value that stands under `key` at the end of a way. */
type Visitor = (value: unknown, up: Way | undefined, key: string | number | undefined, found: Found) => void;

const visitors: WeakMap<object, Visitor | null> = new WeakMap();

/** What looks at values of a schema, made once; nothing where there is nothing to look for. */
function visitorOf(root: JsonObject, schema: unknown): Visitor | null {
  if (!isPlainObject(schema)) return null;
  const known = visitors.get(schema);
  if (known !== undefined) return known;
  const made = makeVisitor(root, schema as JsonObject);
  visitors.set(schema, made);
  return made;
}

function makeVisitor(root: JsonObject, schema: JsonObject): Visitor | null {
  const { $ref: ref, anyOf, oneOf, allOf } = schema;
  if (typeof ref === "string") return referred(root, ref);
  const combines = [anyOf, oneOf, allOf].some((word) => word !== undefined);
  return combines ? combined(root, schema) : plain(root, schema);
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
      if (!takesNull && found.nulls.length < mostTold)
        found.nulls.push({ path: textOf(up, key), message: `expected ${type}, received null` });
      return;
    }
    const here: Way = { up, key, value };
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++)
        (index < places.length ? places[index] : item)?.(value[index], here, index, found);
      return;
    }
    for (const name of Object.keys(value)) {
      const part = parts?.get(name);
      if (part !== undefined) part?.(value[name as keyof typeof value], here, name, found);
      else if (open) rest?.(value[name as keyof typeof value], here, name, found);
      else found.unknown.push({ within: here, key: name });
    }
  };
}

/** Many references to one schema are one visitor of it, made when it is used: a schema may refer to itself. */
function referred(root: JsonObject, ref: string): Visitor {
  return (value, up, key, found) => visitorOf(root, resolveRef(root, ref))?.(value, up, key, found);
}

/** So many ways in which a value fits a schema are looked at. */
const mostWays = 16;

/** Alternatives and schemas that hold together: which of them apply is seen from the value. */
function combined(root: JsonObject, schema: JsonObject): Visitor {
  return (value, up, key, found) => {
    if (value === null) return;
    const known = found.known.get(schema)?.get(value);
    if (known !== undefined) {
      add(found, known);
      return;
    }
    const ways = waysFor(root, schema, value);
    const look = (): Found | undefined => {
      const way = ways.next();
      if (way.done === true) return undefined;
      const seen: Found = { unknown: [], nulls: [], known: found.known };
      visitParts(root, way.value.filter(saysSomething), value, up, key, seen);
      return seen;
    };
    const first = look();
    if (first === undefined) return;
    let { unknown } = first;
    // A value may fit other alternatives too: what one of them names is what the model was shown, and zod drops it.
    for (let nth = 1; nth < mostWays && unknown.length > 0; nth++) {
      const other = look();
      if (other === undefined) break;
      unknown = inBoth(unknown, other.unknown);
    }
    const all = { unknown, nulls: first.nulls };
    add(found, all);
    if (first.unknown.length === 0) return;
    const ofSchema = found.known.get(schema);
    if (ofSchema === undefined) found.known.set(schema, new Map([[value, all]]));
    else ofSchema.set(value, all);
  };
}

function add(found: Found, { unknown, nulls }: Pick<Found, "unknown" | "nulls">): void {
  for (const each of unknown) found.unknown.push(each);
  for (const each of nulls) if (found.nulls.length < mostTold) found.nulls.push(each);
}

function visitParts(
  root: JsonObject,
  parts: readonly JsonObject[],
  value: unknown,
  up: Way | undefined,
  key: string | number | undefined,
  found: Found,
): void {
  const [only] = parts;
  if (parts.length === 1) visitorOf(root, only)?.(value, up, key, found);
  else if (parts.length > 1) visitTogether(root, parts, value, up, key, found);
}

/** What is unknown either way: by itself, or with what it stands in. */
function inBoth(one: readonly Unknown[], other: readonly Unknown[]): Unknown[] {
  const [inOne, inOther] = [keysOf(one), keysOf(other)];
  const inner = other.filter((each) => !isOf(inOne, each.within, each.key) && isWithin(inOne, each));
  return [...one.filter((each) => isWithin(inOther, each)), ...inner];
}

/** Unknown keys by what has them. */
type KeysOf = ReadonlyMap<object, ReadonlySet<string | number | undefined>>;

function keysOf(list: readonly Unknown[]): KeysOf {
  const keys = new Map<object, Set<string>>();
  for (const { within, key } of list) {
    const known = keys.get(within.value);
    if (known === undefined) keys.set(within.value, new Set([key]));
    else known.add(key);
  }
  return keys;
}

function isOf(keys: KeysOf, within: Way | undefined, key: string | number | undefined): boolean {
  return within !== undefined && keys.get(within.value)?.has(key) === true;
}

function isWithin(keys: KeysOf, { within, key }: Unknown): boolean {
  if (isOf(keys, within, key)) return true;
  for (let way: Way | undefined = within; way !== undefined; way = way.up) if (isOf(keys, way.up, way.key)) return true;
  return false;
}

/** A value to which several schemas apply: what one of them names is known, what one leaves open is open. */
function visitTogether(
  root: JsonObject,
  parts: readonly JsonObject[],
  value: unknown,
  up: Way | undefined,
  key: string | number | undefined,
  found: Found,
): void {
  if (!isPlainObject(value)) {
    for (const part of parts) visitorOf(root, part)?.(value, up, key, found);
    return;
  }
  const here: Way = { up, key, value };
  const open = parts.some((part) => part["properties"] === undefined || isOpen(part));
  for (const name of Object.keys(value)) {
    const naming = parts.flatMap(({ properties }) =>
      isPlainObject(properties) && Object.hasOwn(properties, name) ? [properties[name]] : [],
    );
    for (const named of naming) visitorOf(root, named)?.(value[name], here, name, found);
    if (naming.length > 0) continue;
    if (!open) found.unknown.push({ within: here, key: name });
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
 * The schemas that apply to a value together, for each choice of alternatives that it fits: that of zod, which takes the first,
 * comes first. None where it fits none, which is for the parser to say.
 */
function* waysFor(root: JsonObject, schema: JsonObject, value: unknown): Generator<readonly JsonObject[], void> {
  const parts: JsonObject[] = [];
  const choices: Choice[] = [];
  if (gather(root, schema, value, parts, choices)) yield* waysThrough(root, choices, value, parts);
}

/** Alternatives of which one applies, and the place of the first that the value fits. */
interface Choice {
  readonly among: readonly JsonObject[];
  readonly first: number;
}

/** What applies in any case, and what is chosen among. False where a choice has nothing that the value fits. */
function gather(root: JsonObject, schema: JsonObject, value: unknown, parts: JsonObject[], choices: Choice[]): boolean {
  const { $ref: ref, anyOf, oneOf, allOf, ...own } = schema;
  if (typeof ref === "string") {
    const target = resolveRef(root, ref);
    return !isPlainObject(target) || gather(root, target as JsonObject, value, parts, choices);
  }
  const alternatives = anyOf ?? oneOf;
  if (alternatives === undefined && allOf === undefined) {
    parts.push(schema);
    return true;
  }
  if (saysSomething(own)) parts.push(ownPart(schema, own));
  if (!listOf(allOf).every((each) => gather(root, each, value, parts, choices))) return false;
  if (alternatives === undefined) return true;
  const among = listOf(alternatives);
  const first = among.findIndex((each) => fits(root, each, value));
  choices.push({ among, first });
  return first !== -1;
}

function* waysThrough(
  root: JsonObject,
  [choice, ...rest]: readonly Choice[],
  value: unknown,
  parts: readonly JsonObject[],
): Generator<readonly JsonObject[], void> {
  if (choice === undefined) {
    yield parts;
    return;
  }
  for (const [place, each] of choice.among.entries()) {
    if (place < choice.first || (place > choice.first && !fits(root, each, value))) continue;
    for (const more of waysFor(root, each, value)) yield* waysThrough(root, rest, value, [...parts, ...more]);
  }
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
  for (let way = up; way?.key !== undefined; way = way.up) keys.unshift(way.key);
  return keys.join(".");
}
