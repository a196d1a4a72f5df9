/** Query parameters, checked by a schema. */
import * as z from "zod";
import { createRequestProblem } from "./request-problems.ts";

/** Prefix of the parameters of a metadata filter. */
const metadataPrefix = "metadata.";

/**
 * Returns the parameters of a query. A list may be separated by commas, or repeated; `metadata.<key>` is a filter.
 * Throws a problem (422) for an unknown, a repeated or an invalid parameter.
 */
export function readQuery<Query>(query: URLSearchParams, schema: z.ZodType<Query>): Query {
  const shape: Readonly<Record<string, z.core.$ZodType>> = schema instanceof z.ZodObject ? schema.shape : {};
  const given: Record<string, unknown> = Object.create(null);
  for (const name of new Set(query.keys())) given[name] = readParameter(query.getAll(name), shape[name]);
  const metadata = readMetadata(query);
  const hasMetadata = Object.hasOwn(shape, "metadata");
  if (hasMetadata) for (const name of Object.keys(given)) if (name.startsWith(metadataPrefix)) delete given[name];
  const parsed = schema.safeParse({ ...given, ...(hasMetadata && metadata !== undefined ? { metadata } : {}) });
  if (parsed.success) return parsed.data;
  throw createRequestProblem({
    detail: "The query has an invalid parameter.",
    errors: parsed.error.issues.slice(0, 32).map(({ path, message }) => ({
      pointer: path.length === 0 ? "" : `/${path.map(String).join("/")}`,
      detail: message,
    })),
  });
}

function readParameter(values: readonly string[], schema: z.core.$ZodType | undefined): unknown {
  if (isList(schema)) return values.flatMap((value) => value.split(",")).filter((value) => value !== "");
  return values.length === 1 ? values[0] : values;
}

function isList(schema: z.core.$ZodType | undefined): boolean {
  return schema instanceof z.ZodOptional ? schema.unwrap() instanceof z.ZodArray : schema instanceof z.ZodArray;
}

/** Values of a filter: numbers, booleans and null as in JSON, a text in quotes, and any other text as it is. */
function readMetadata(query: URLSearchParams): Readonly<Record<string, unknown>> | undefined {
  const entries = [...query].filter(([name]) => name.startsWith(metadataPrefix));
  if (entries.length === 0) return undefined;
  return Object.fromEntries(entries.map(([name, text]) => [name.slice(metadataPrefix.length), parseScalar(text)]));
}

const scalarPattern = /^(?:null|true|false|-?\d+(?:\.\d+)?|"[^"\\]*")$/;

function parseScalar(text: string): unknown {
  return scalarPattern.test(text) ? JSON.parse(text) : text;
}
