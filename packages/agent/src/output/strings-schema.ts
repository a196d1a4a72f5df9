/** The schema of a list of names or ids. */
import { type Schema, schemaWhere } from "@statewright/core";

/** Lists of texts, `expected` saying of what; empty where nothing was given. */
export function textsSchema(expected: string): Schema<readonly string[] | undefined, readonly string[]> {
  return schemaWhere(expected, areTexts, []);
}

function areTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
