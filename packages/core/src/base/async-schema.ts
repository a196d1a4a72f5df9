/**
 * Rejects asynchronous schemas.
 *
 * Values are parsed in many places, again after a resume, and without a promise between a decision and its effect. So
 * validation is always synchronous, and an asynchronous schema is an error of the author of the schema.
 */

import { type ErrorPlace, StatewrightError } from "./errors.ts";
import { ignoreRejections } from "./ignore-rejections.ts";
import type { ParseResult } from "./schema.ts";

/**
 * Throws `async_schema` for a schema with an asynchronous part: a zod schema with an async refinement or transform.
 * The check runs before the first use of the schema. `subject` is the name of the schema in the error message.
 */
export function checkSyncSchema(schema: unknown, subject: string, place?: ErrorPlace): void {
  const path = findAsyncPart(schema);
  if (path === undefined) return;
  throw createAsyncSchemaError(
    `${subject} has an async refinement or transform${path === "" ? "" : ` at "${path}"`}`,
    place,
  );
}

/** Throws `async_schema` for a parse result of a schema that returned a promise. */
export function checkSyncResult(
  parsed: Pick<Extract<ParseResult<unknown>, { readonly ok: false }>, "isAsync">,
  subject: string,
  place?: ErrorPlace,
): void {
  if (parsed.isAsync === true)
    throw createAsyncSchemaError(`${subject} has an asynchronous schema: its validation returned a promise`, place);
}

/** Throws `async_schema` when the validator of a JSON Schema returned a promise (possible in untyped JavaScript). */
export function checkSyncIssues(issues: unknown, subject: string, place?: ErrorPlace): void {
  if (!(issues instanceof Promise)) return;
  ignoreRejections(issues);
  checkSyncResult({ isAsync: true }, subject, place);
}

function createAsyncSchemaError(what: string, place: ErrorPlace | undefined): StatewrightError {
  return new StatewrightError("async_schema", {
    what,
    next: "Use a synchronous schema, and do asynchronous checks in a tool, a node or a hook",
    ...(place === undefined ? {} : { place }),
  });
}

/** Keys of a zod definition that contain nested schemas. */
const partKeys = [
  ...["shape", "element", "items", "rest", "catchall", "keyType", "valueType", "innerType"],
  ...["options", "left", "right", "in", "out", "checks"],
] as const;

/** Limit of visited schemas: a getter may create a new schema on each access, so recursive schemas can be endless. */
const maxParts = 5_000;

/** Returns the path of the first asynchronous part, or undefined. Best effort: lazy schemas are not resolved. */
function findAsyncPart(schema: unknown): string | undefined {
  const visited = new Set<object>();
  const pending: { readonly schema: unknown; readonly path: string }[] = [{ schema, path: "" }];
  for (const { schema: each, path } of pending) {
    const zod = getZodInternals(each);
    if (zod === undefined || visited.has(zod)) continue;
    if (visited.size === maxParts) return undefined;
    visited.add(zod);
    const { def = {}, check } = zod;
    if ([check, def["fn"], def["transform"]].some(isAsyncFunction)) return path;
    for (const partKey of partKeys)
      for (const [key, part] of listParts(def, partKey))
        pending.push({ schema: part, path: partKey !== "shape" ? path : path === "" ? key : `${path}.${key}` });
  }
  return undefined;
}

/**
 * Lists the nested schemas under a key: a single schema, a list or an object. Returns an empty list when the getter
 * throws; such a part is checked at its first use.
 */
function listParts(def: Readonly<Record<string, unknown>>, partKey: string): readonly (readonly [string, unknown])[] {
  try {
    const value = def[partKey];
    if (typeof value !== "object" || value === null) return [];
    return getZodInternals(value) === undefined ? Object.entries(value) : [["", value]];
  } catch {
    return [];
  }
}

/** Returns the zod internals of a schema or check; undefined for other validators. */
function getZodInternals(
  schema: unknown,
): { readonly def?: Readonly<Record<string, unknown>>; readonly check?: unknown } | undefined {
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return undefined;
  return "_zod" in schema && typeof schema._zod === "object" && schema._zod !== null ? schema._zod : undefined;
}

function isAsyncFunction(value: unknown): boolean {
  return typeof value === "function" && Object.prototype.toString.call(value) === "[object AsyncFunction]";
}
