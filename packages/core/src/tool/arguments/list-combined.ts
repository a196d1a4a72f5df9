/** Schemas that apply to the same value: alternatives, conditions, dependencies and references. */
import { isPlainObject, type JsonObject } from "../../base/json.ts";

/** Returns the schema of a reference; undefined for an unknown one. */
export type ResolveReference = (ref: string) => unknown;

const combinedLists = ["anyOf", "oneOf", "allOf"];
const combinedSchemas = ["not", "if", "then", "else"];
const referenceKeywords = ["$ref", "$dynamicRef", "$recursiveRef"];

/** Returns the schemas that apply to the same value. */
export function listCombined(schema: JsonObject, resolve: ResolveReference): readonly unknown[] {
  const listed = combinedLists.flatMap((word) => (Array.isArray(schema[word]) ? (schema[word] as unknown[]) : []));
  for (const word of combinedSchemas) if (schema[word] !== undefined) listed.push(schema[word]);
  for (const word of ["dependentSchemas", "dependencies"])
    if (isPlainObject(schema[word])) listed.push(...Object.values(schema[word]));
  for (const word of referenceKeywords) {
    const ref = schema[word];
    if (typeof ref === "string") listed.push(resolve(ref));
  }
  return listed;
}
