/** Parses the arguments of a call by the tool's schema, and finds unexpected arguments at every depth. */

import { checkSyncIssues, checkSyncResult } from "../../base/async-schema.ts";
import { argumentBounds, findInvalidData } from "../../base/bounds.ts";
import { describeThrown } from "../../base/errors.ts";
import { describeValue, isPlainObject, type Json, type JsonObject } from "../../base/json.ts";
import { parseWith, type SchemaIssue } from "../../base/schema.ts";
import { toModelTool } from "../definition/model-tool.ts";
import type { Tool, ToolSpec } from "../definition/tool.ts";
import { compileSchema } from "./json-schema.ts";
import { resolveRef } from "./resolve-ref.ts";

/** Result of parsing: the arguments for the tool, or the issues for the model. */
export type ParsedArgs =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly SchemaIssue[] };

/**
 * Parses arguments by the tool's schema. Reports unknown keys at every depth, which zod would drop silently; for a
 * JSON Schema, `additionalProperties` decides. Throws `async_schema` for an asynchronous schema.
 */
export function parseArgs(spec: ToolSpec, args: unknown): ParsedArgs {
  if (!isPlainObject(args)) return { ok: false, issues: [{ path: "", message: "expected an object of arguments" }] };
  const invalid = findInvalidData(args, argumentBounds);
  if (invalid !== undefined) return { ok: false, issues: [{ path: "", message: `they ${invalid.text}` }] };
  if ("jsonSchema" in spec.input) return validateArgs(spec, spec.input.validate, args);
  const advertised = toModelTool(spec).inputSchema;
  const unexpected = findUnexpectedArgs(advertised, args);
  const parsed = parseWith(spec.input, args);
  if (!parsed.ok) {
    checkSyncResult(parsed, describeInput(spec), { tool: spec.name });
    const issues = parsed.issues.map((issue) => addExpectedType(advertised, issue));
    return { ok: false, issues: mergeUnknownKeys(unexpected.unknown, issues) };
  }
  if (unexpected.unknown.length > 0) return { ok: false, issues: unexpected.unknown };
  // A coercing schema converts null to 0 or "null". Refuse null unless the advertised schema allows null.
  return unexpected.nulls.length > 0 ? { ok: false, issues: unexpected.nulls } : parsed;
}

/** Adds unknown keys to the issues of a schema, in place of the schema's own issues about unknown keys. */
function mergeUnknownKeys(unknown: readonly SchemaIssue[], issues: readonly SchemaIssue[]): readonly SchemaIssue[] {
  if (unknown.length === 0) return issues;
  return [...unknown, ...issues.filter(({ message }) => !/unrecognized key|unknown key/i.test(message))];
}

/**
 * Runs the tool's `prepareArguments` on a copy of the arguments; returns the same arguments without
 * `prepareArguments`.
 */
export function prepareArgs({ spec, prepareArguments }: Tool<never, never>, args: unknown): ParsedArgs {
  if (prepareArguments === undefined) return { ok: true, value: args };
  try {
    return { ok: true, value: prepareArguments(structuredClone(args)) };
  } catch (thrown) {
    return {
      ok: false,
      issues: [{ path: "", message: `"${spec.name}" cannot prepare the arguments: ${describeThrown(thrown)}` }],
    };
  }
}

/** Returns true if a tool has no arguments. An empty text from a model then means no arguments. */
export function hasNoArguments(spec: ToolSpec): boolean {
  return Object.keys((toModelTool(spec).inputSchema["properties"] ?? {}) as object).length === 0;
}

function validateArgs(spec: ToolSpec, validate: (value: unknown) => readonly SchemaIssue[], args: unknown): ParsedArgs {
  let issues: readonly SchemaIssue[];
  try {
    issues = validate(args);
  } catch (thrown) {
    return { ok: false, issues: [{ path: "", message: `the arguments cannot be read: ${describeThrown(thrown)}` }] };
  }
  checkSyncIssues(issues, describeInput(spec), { tool: spec.name });
  if (!Array.isArray(issues)) {
    const returned = describeValue(issues);
    return {
      ok: false,
      issues: [
        { path: "", message: `the arguments cannot be read: the validator returned ${returned}, not a list of issues` },
      ],
    };
  }
  return issues.length === 0 ? { ok: true, value: args } : { ok: false, issues };
}

function describeInput({ name }: ToolSpec): string {
  return `the input of the tool "${name}"`;
}

/** Adds the expected type to an issue with a custom message of the schema. */
function addExpectedType(root: JsonObject, issue: SchemaIssue): SchemaIssue {
  if (issue.path === "" || /expected|received/i.test(issue.message)) return issue;
  let current: unknown = root;
  for (const step of issue.path.split(".")) {
    if (!isPlainObject(current)) return issue;
    const { properties, items, prefixItems, $ref: ref } = current as JsonObject;
    if (typeof ref === "string") current = resolveRef(root, ref);
    else if (isPlainObject(properties) && Object.hasOwn(properties, step)) current = properties[step];
    else current = Array.isArray(prefixItems) ? (prefixItems as readonly Json[])[Number(step)] : items;
  }
  const type = isPlainObject(current) ? current["type"] : undefined;
  return typeof type === "string" ? { path: issue.path, message: `${issue.message} (expected ${type})` } : issue;
}

/**
 * Drops injected parameter names that the model or a change of arguments forged, before parsing. The injected value
 * wins.
 */
export function omitHiddenArgs(spec: ToolSpec, args: unknown): unknown {
  if (!isPlainObject(args) || listForgedKeys(spec, args).length === 0) return args;
  return Object.fromEntries(Object.entries(args).filter(([name]) => !Object.hasOwn(spec.inject, name)));
}

/** Lists the injected parameter names among the arguments. */
export function listForgedKeys(spec: ToolSpec, args: unknown): readonly string[] {
  if (!isPlainObject(args) || Object.keys(spec.inject).length === 0) return [];
  return Object.keys(args).filter((name) => Object.hasOwn(spec.inject, name));
}

/** Issues of unexpected arguments. */
export interface UnexpectedArgs {
  /** Keys that are in no part of a closed schema. */
  readonly unknown: readonly SchemaIssue[];
  /** Nulls that the schema forbids. */
  readonly nulls: readonly SchemaIssue[];
}

/** Maximum reported issues of a kind; each issue has a path text, which may be long. */
const maxReported = 100;

const noUnexpectedArgs: UnexpectedArgs = Object.freeze({ unknown: Object.freeze([]), nulls: Object.freeze([]) });

/** Finds unexpected arguments at every depth. */
function findUnexpectedArgs(schema: JsonObject, args: unknown): UnexpectedArgs {
  const found: Findings = { unknown: [], nulls: [], cache: new Map() };
  getVisitor(schema, schema)?.(args, undefined, undefined, found);
  if (found.unknown.length === 0 && found.nulls.length === 0) return noUnexpectedArgs;
  return {
    unknown: found.unknown
      .slice(0, maxReported)
      .map(({ owner, key }) => ({ path: formatPath(owner, key), message: "unknown argument" })),
    nulls: found.nulls,
  };
}

/** Findings of a traversal. */
interface Findings {
  readonly unknown: UnknownKey[];
  readonly nulls: SchemaIssue[];
  /**
   * Findings of combined schemas by value. Without this cache, shared parts of alternatives would make the traversal
   * exponential.
   */
  readonly cache: Map<object, Map<unknown, Pick<Findings, "unknown" | "nulls">>>;
}

/** An unknown key of an object. */
interface UnknownKey {
  readonly owner: ValuePath;
  readonly key: string;
}

/** Path from the arguments to a list or object, as a linked list; converted to text only for an issue. */
interface ValuePath {
  readonly parent: ValuePath | undefined;
  readonly key: string | number | undefined;
  readonly value: object;
}

/** Visits the value under `key` of a parent. */
type Visitor = (value: unknown, up: ValuePath | undefined, key: string | number | undefined, found: Findings) => void;

const visitors: WeakMap<object, Visitor | null> = new WeakMap();

/** Returns the visitor of a schema, cached; null when the schema has nothing to check. */
function getVisitor(root: JsonObject, schema: unknown): Visitor | null {
  if (!isPlainObject(schema)) return null;
  const known = visitors.get(schema);
  if (known !== undefined) return known;
  const visitor = createVisitor(root, schema as JsonObject);
  visitors.set(schema, visitor);
  return visitor;
}

function createVisitor(root: JsonObject, schema: JsonObject): Visitor | null {
  const { $ref: ref, anyOf, oneOf, allOf } = schema;
  if (typeof ref === "string") return createRefVisitor(root, ref);
  const isCombined = [anyOf, oneOf, allOf].some((word) => word !== undefined);
  return isCombined ? createCombinedVisitor(root, schema) : createPlainVisitor(root, schema);
}

function createPlainVisitor(root: JsonObject, schema: JsonObject): Visitor | null {
  const { type, properties, additionalProperties, items, prefixItems } = schema;
  const allowsNull = typeof type !== "string" || type === "null";
  const parts = isPlainObject(properties)
    ? new Map(Object.entries(properties).map(([name, part]) => [name, getVisitor(root, part)]))
    : undefined;
  const isOpenObject = parts === undefined || isOpen(schema);
  const restVisitor = getVisitor(root, additionalProperties);
  const itemVisitor = getVisitor(root, items);
  const prefixVisitors = Array.isArray(prefixItems) ? prefixItems.map((place) => getVisitor(root, place)) : [];
  if (allowsNull && parts === undefined && restVisitor === null && itemVisitor === null && prefixVisitors.length === 0)
    return null;
  return (value, parent, key, found) => {
    if (typeof value !== "object") return;
    if (value === null) {
      if (!allowsNull && found.nulls.length < maxReported)
        found.nulls.push({ path: formatPath(parent, key), message: `expected ${type}, received null` });
      return;
    }
    const path: ValuePath = { parent, key, value };
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++)
        (index < prefixVisitors.length ? prefixVisitors[index] : itemVisitor)?.(value[index], path, index, found);
      return;
    }
    for (const name of Object.keys(value)) {
      const part = parts?.get(name);
      if (part !== undefined) part?.(value[name as keyof typeof value], path, name, found);
      else if (isOpenObject) restVisitor?.(value[name as keyof typeof value], path, name, found);
      else found.unknown.push({ owner: path, key: name });
    }
  };
}

/** Creates a visitor that resolves the reference at visit time, because a schema may refer to itself. */
function createRefVisitor(root: JsonObject, ref: string): Visitor {
  return (value, parent, key, found) => getVisitor(root, resolveRef(root, ref))?.(value, parent, key, found);
}

/** Maximum examined combinations of alternatives. */
const maxCombinations = 16;

/** Creates a visitor of `anyOf`, `oneOf` and `allOf`; the value selects the applicable schemas. */
function createCombinedVisitor(root: JsonObject, schema: JsonObject): Visitor {
  return (value, parent, key, found) => {
    if (value === null) return;
    const known = found.cache.get(schema)?.get(value);
    if (known !== undefined) {
      addFindings(found, known);
      return;
    }
    const combinations = streamCombinations(root, schema, value);
    const visitNext = (): Findings | undefined => {
      const combination = combinations.next();
      if (combination.done === true) return undefined;
      const seen: Findings = { unknown: [], nulls: [], cache: found.cache };
      visitParts(root, combination.value.filter(hasConstraints), value, { parent, key, found: seen });
      return seen;
    };
    const first = visitNext();
    if (first === undefined) return;
    let { unknown } = first;
    // A value may match other alternatives too. Keys in any matching alternative are advertised to the model,
    // although zod drops them.
    for (let nth = 1; nth < maxCombinations && unknown.length > 0; nth++) {
      const other = visitNext();
      if (other === undefined) break;
      unknown = intersectUnknown(unknown, other.unknown);
    }
    const all = { unknown, nulls: first.nulls };
    addFindings(found, all);
    if (first.unknown.length === 0) return;
    const bySchema = found.cache.get(schema);
    if (bySchema === undefined) found.cache.set(schema, new Map([[value, all]]));
    else bySchema.set(value, all);
  };
}

function addFindings(found: Findings, { unknown, nulls }: Pick<Findings, "unknown" | "nulls">): void {
  for (const each of unknown) found.unknown.push(each);
  for (const each of nulls) if (found.nulls.length < maxReported) found.nulls.push(each);
}

/** Place of a visited value in its parent, and the findings so far. */
interface VisitPlace {
  readonly parent: ValuePath | undefined;
  readonly key: string | number | undefined;
  readonly found: Findings;
}

function visitParts(
  root: JsonObject,
  parts: readonly JsonObject[],
  value: unknown,
  { parent, key, found }: VisitPlace,
): void {
  const [only] = parts;
  if (parts.length === 1) getVisitor(root, only)?.(value, parent, key, found);
  else if (parts.length > 1) visitIntersection(root, parts, value, { parent, key, found });
}

/** Returns the keys that are unknown in both findings, by themselves or as part of an unknown parent. */
function intersectUnknown(first: readonly UnknownKey[], second: readonly UnknownKey[]): UnknownKey[] {
  const [firstKeys, secondKeys] = [groupKeys(first), groupKeys(second)];
  const inner = second.filter((each) => !hasKey(firstKeys, each.owner, each.key) && isInside(firstKeys, each));
  return [...first.filter((each) => isInside(secondKeys, each)), ...inner];
}

/** Unknown keys by their object. */
type KeysByOwner = ReadonlyMap<object, ReadonlySet<string | number | undefined>>;

function groupKeys(list: readonly UnknownKey[]): KeysByOwner {
  const keys = new Map<object, Set<string>>();
  for (const { owner, key } of list) {
    const known = keys.get(owner.value);
    if (known === undefined) keys.set(owner.value, new Set([key]));
    else known.add(key);
  }
  return keys;
}

function hasKey(keys: KeysByOwner, owner: ValuePath | undefined, key: string | number | undefined): boolean {
  return owner !== undefined && keys.get(owner.value)?.has(key) === true;
}

function isInside(keys: KeysByOwner, { owner, key }: UnknownKey): boolean {
  if (hasKey(keys, owner, key)) return true;
  for (let way: ValuePath | undefined = owner; way !== undefined; way = way.parent)
    if (hasKey(keys, way.parent, way.key)) return true;
  return false;
}

/**
 * Visits a value by several schemas: a key is known if any schema has the key, and the object is open if any schema
 * is open.
 */
function visitIntersection(
  root: JsonObject,
  parts: readonly JsonObject[],
  value: unknown,
  { parent, key, found }: VisitPlace,
): void {
  if (!isPlainObject(value)) {
    for (const part of parts) getVisitor(root, part)?.(value, parent, key, found);
    return;
  }
  const path: ValuePath = { parent, key, value };
  const isOpenObject = parts.some((part) => part["properties"] === undefined || isOpen(part));
  for (const name of Object.keys(value)) {
    const matching = parts.flatMap(({ properties }) =>
      isPlainObject(properties) && Object.hasOwn(properties, name) ? [properties[name]] : [],
    );
    for (const named of matching) getVisitor(root, named)?.(value[name], path, name, found);
    if (matching.length > 0) continue;
    if (!isOpenObject) found.unknown.push({ owner: path, key: name });
    else for (const part of parts) getVisitor(root, part["additionalProperties"])?.(value[name], path, name, found);
  }
}

function hasConstraints({ properties, additionalProperties, items, prefixItems }: JsonObject): boolean {
  return [properties, additionalProperties, items, prefixItems].some((word) => word !== undefined);
}

function isOpen({ additionalProperties, patternProperties }: JsonObject): boolean {
  return patternProperties !== undefined || (additionalProperties !== undefined && additionalProperties !== false);
}

/**
 * Generates the schemas that apply to a value, for each matching combination of alternatives. The combination of
 * first matches, which zod takes, comes first. Empty when no alternative matches; the parser reports that.
 */
function* streamCombinations(
  root: JsonObject,
  schema: JsonObject,
  value: unknown,
): Generator<readonly JsonObject[], void> {
  const parts: JsonObject[] = [];
  const choices: Choice[] = [];
  if (collectParts(root, schema, value, { parts, choices })) yield* streamChoices(root, choices, value, parts);
}

/** Alternatives, and the index of the first match. */
interface Choice {
  readonly candidates: readonly JsonObject[];
  readonly first: number;
}

/**
 * Collects the parts that always apply, and the choices between alternatives. Returns false when a choice has no
 * match.
 */
function collectParts(
  root: JsonObject,
  schema: JsonObject,
  value: unknown,
  { parts, choices }: { readonly parts: JsonObject[]; readonly choices: Choice[] },
): boolean {
  const { $ref: ref, anyOf, oneOf, allOf, ...rest } = schema;
  if (typeof ref === "string") {
    const target = resolveRef(root, ref);
    return !isPlainObject(target) || collectParts(root, target as JsonObject, value, { parts, choices });
  }
  const alternatives = anyOf ?? oneOf;
  if (alternatives === undefined && allOf === undefined) {
    parts.push(schema);
    return true;
  }
  if (hasConstraints(rest)) parts.push(getOwnPart(schema, rest));
  if (!listSchemas(allOf).every((each) => collectParts(root, each, value, { parts, choices }))) return false;
  if (alternatives === undefined) return true;
  const candidates = listSchemas(alternatives);
  const first = candidates.findIndex((each) => matchesSchema(root, each, value));
  choices.push({ candidates, first });
  return first !== -1;
}

function* streamChoices(
  root: JsonObject,
  [choice, ...rest]: readonly Choice[],
  value: unknown,
  parts: readonly JsonObject[],
): Generator<readonly JsonObject[], void> {
  if (choice === undefined) {
    yield parts;
    return;
  }
  for (const [index, each] of choice.candidates.entries()) {
    if (index < choice.first || (index > choice.first && !matchesSchema(root, each, value))) continue;
    for (const more of streamCombinations(root, each, value))
      yield* streamChoices(root, rest, value, [...parts, ...more]);
  }
}

const ownParts: WeakMap<JsonObject, JsonObject> = new WeakMap();

/** Returns a schema without its alternatives, as the same object each time (a cache key). */
function getOwnPart(schema: JsonObject, rest: JsonObject): JsonObject {
  const known = ownParts.get(schema) ?? rest;
  ownParts.set(schema, known);
  return known;
}

function listSchemas(schemas: Json | undefined): readonly JsonObject[] {
  return Array.isArray(schemas) ? schemas.filter((each): each is JsonObject => isPlainObject(each)) : [];
}

const checks: WeakMap<JsonObject, (value: unknown) => readonly SchemaIssue[]> = new WeakMap();

function matchesSchema(root: JsonObject, schema: JsonObject, value: unknown): boolean {
  let check = checks.get(schema);
  if (check === undefined) {
    check = compileSchema(schema, root);
    checks.set(schema, check);
  }
  return check(value).length === 0;
}

function formatPath(parent: ValuePath | undefined, key: string | number | undefined): string {
  const keys = key === undefined ? [] : [key];
  for (let path = parent; path?.key !== undefined; path = path.parent) keys.unshift(path.key);
  return keys.join(".");
}
