/** Schema of a list of names or ids. */

import type { Schema } from "@statewright/core";
import { createGuardSchema } from "@statewright/core/adapter";

/** Creates a schema of string lists, default empty; `expected` describes the strings in errors. */
export function createStringsSchema(expected: string): Schema<readonly string[] | undefined, readonly string[]> {
  return createGuardSchema(expected, isStringList, []);
}

function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}
