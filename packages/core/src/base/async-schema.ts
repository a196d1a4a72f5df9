/**
 * Schemas that answer later. Nothing here waits for a schema: a value is parsed in many places, again after a resume, and
 * without a promise between a decision and its effect. So such a schema is a mistake of who defined it, and of nobody else.
 */

import { type ErrorPlace, StatewrightError } from "./errors.ts";
import { disregardPromises } from "./ignore-rejections.ts";
import type { ParseResult } from "./schema.ts";

/**
 * Throws `async_schema` for a schema that is seen to answer later before it is used: a zod schema with a refinement or a
 * transform that is an async function. `named` says where it stands.
 */
export function checkAnswersAtOnce(schema: unknown, named: string, place?: ErrorPlace): void {
  const path = laterPart(schema);
  if (path === undefined) return;
  throw asyncSchema(`${named} has an async refinement or transform${path === "" ? "" : ` at "${path}"`}`, place);
}

/** Throws `async_schema` for a value that could not be parsed because its schema answers later. */
export function checkAnswered(
  parsed: Pick<Extract<ParseResult<unknown>, { readonly ok: false }>, "isAsync">,
  named: string,
  place?: ErrorPlace,
): void {
  if (parsed.isAsync === true) throw asyncSchema(`${named} has a schema that answers with a promise`, place);
}

/** Throws `async_schema` where the validator of a JSON Schema has answered with a promise, as a program without types may write one. */
export function checkIssuesAtOnce(issues: unknown, named: string, place?: ErrorPlace): void {
  if (!(issues instanceof Promise)) return;
  disregardPromises(issues);
  checkAnswered({ isAsync: true }, named, place);
}

function asyncSchema(what: string, place: ErrorPlace | undefined): StatewrightError {
  return new StatewrightError("async_schema", {
    what,
    next: "Let the schema say what it knows at once, and ask for the rest where it is used: in a tool, a node or a hook",
    ...(place === undefined ? {} : { place }),
  });
}

/** The words of a zod definition under which parts of a schema stand. */
const parts = [
  ...["shape", "element", "items", "rest", "catchall", "keyType", "valueType", "innerType"],
  ...["options", "left", "right", "in", "out", "checks"],
] as const;

/** So many parts are looked at: a getter may make a new schema each time, and such a schema has no end. */
const mostParts = 5_000;

/** The path of the first part that answers later, as far as that can be seen. */
function laterPart(schema: unknown): string | undefined {
  const met = new Set<object>();
  const ahead: { readonly schema: unknown; readonly path: string }[] = [{ schema, path: "" }];
  for (const { schema: each, path } of ahead) {
    const zod = zodOf(each);
    if (zod === undefined || met.has(zod)) continue;
    if (met.size === mostParts) return undefined;
    met.add(zod);
    const { def = {}, check } = zod;
    if ([check, def["fn"], def["transform"]].some(isAsync)) return path;
    for (const word of parts)
      for (const [key, part] of partsUnder(def, word))
        ahead.push({ schema: part, path: word !== "shape" ? path : path === "" ? key : `${path}.${key}` });
  }
  return undefined;
}

/** One schema, a list of them, or an object of them. One that names what is not there yet is looked at when it is used. */
function partsUnder(def: Readonly<Record<string, unknown>>, word: string): readonly (readonly [string, unknown])[] {
  try {
    const given = def[word];
    if (typeof given !== "object" || given === null) return [];
    return zodOf(given) === undefined ? Object.entries(given) : [["", given]];
  } catch {
    return [];
  }
}

/** What zod says of a schema or of a check; nothing for those of others. */
function zodOf(
  schema: unknown,
): { readonly def?: Readonly<Record<string, unknown>>; readonly check?: unknown } | undefined {
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return undefined;
  return "_zod" in schema && typeof schema._zod === "object" && schema._zod !== null ? schema._zod : undefined;
}

function isAsync(made: unknown): boolean {
  return typeof made === "function" && Object.prototype.toString.call(made) === "[object AsyncFunction]";
}
