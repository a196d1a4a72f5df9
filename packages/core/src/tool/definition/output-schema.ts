/** What an agent is to give: a schema as models take it, an object at the top, and the way back from what a model gave. */

import { checkAnswered, checkAnswersAtOnce, checkIssuesAtOnce } from "../../base/async-schema.ts";
import { argumentBounds, unfitData } from "../../base/bounds.ts";
import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { deepFreeze, describeValue, isPlainObject, type Json, type JsonObject } from "../../base/json.ts";
import { isSchema, issuesText, parseWith, type Schema, type SchemaIssue } from "../../base/schema.ts";
import type { JsonSchemaInput } from "../arguments/json-schema.ts";
import { jsonSchemaOf, withEnums } from "./model-tool.ts";

/** What describes an output: a zod schema or another Standard Schema, or a JSON Schema (`jsonSchemaInput`). */
export type OutputInput<Output> = Schema<unknown, Output> | JsonSchemaInput<Output>;

/** What a model gave, read by the schema: the output, or what is wrong with it. */
export type ReadOutput<Output> =
  | { readonly ok: true; readonly value: Output }
  | { readonly ok: false; readonly issues: string };

/** A schema of outputs. */
export interface OutputSchema<Output = unknown> {
  /** What a model is shown. */
  readonly jsonSchema: JsonObject;
  /** The output is no object: it stands in what the model gives as `value`. */
  readonly isWrapped: boolean;
  readonly read: (given: unknown) => ReadOutput<Output>;
}

const named = "the output schema";

/**
 * Read a schema of outputs. Throws `invalid_option` for one that JSON Schema cannot say, and `async_schema` for one that
 * answers later; where that is seen only when it is used, `read` throws it.
 */
export function outputSchema<Output>(input: OutputInput<Output>): OutputSchema<Output> {
  checkAnswersAtOnce(input, named);
  const said = shownOf(input);
  const isObject = said["type"] === "object";
  const jsonSchema = deepFreeze(closed(isObject ? said : inValue(said)) as JsonObject);
  return {
    jsonSchema,
    isWrapped: !isObject,
    read: (given) => {
      const unfit = unfitData(given, argumentBounds);
      if (unfit !== undefined) return { ok: false, issues: `it must not ${unfit.text}` };
      if (isObject) return readBy(input, given);
      if (!isPlainObject(given) || !Object.hasOwn(given, "value"))
        return { ok: false, issues: `expected an object with "value"` };
      return readBy(input, given["value"]);
    },
  };
}

function readBy<Output>(input: OutputInput<Output>, given: unknown): ReadOutput<Output> {
  if (isSchema(input)) {
    const parsed = parseWith(input as Schema<unknown, Output>, given);
    if (parsed.ok) return parsed;
    checkAnswered(parsed, named);
    return { ok: false, issues: issuesText(parsed.issues) };
  }
  let issues: readonly SchemaIssue[];
  try {
    issues = input.validate(given);
  } catch (thrown) {
    return { ok: false, issues: `it cannot be read: ${describeThrown(thrown)}` };
  }
  checkIssuesAtOnce(issues, named);
  if (!Array.isArray(issues))
    return { ok: false, issues: `it cannot be read: the validator gave ${describeValue(issues)}, no issues` };
  return issues.length === 0 ? { ok: true, value: given as Output } : { ok: false, issues: issuesText(issues) };
}

function shownOf(input: OutputInput<unknown>): JsonObject {
  let said: JsonObject | undefined;
  try {
    if (isSchema(input)) said = jsonSchemaOf(input, "throw");
    else if (isPlainObject(input) && isPlainObject(input["jsonSchema"])) said = input["jsonSchema"] as JsonObject;
  } catch (cause) {
    throw unsaid("has a part that JSON Schema cannot say", cause);
  }
  if (said === undefined)
    throw unsaid(isSchema(input) ? "cannot say what it takes as JSON Schema" : `is ${describeValue(input)}`, undefined);
  return withEnums(said);
}

function unsaid(why: string, cause: unknown): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the output schema ${why}`,
    next: "Give a schema of plain types, such as z.object({ … }), or jsonSchemaInput({ … })",
    cause,
  });
}

/** Providers take an object at the top: anything else is its one part. */
function inValue(schema: JsonObject): JsonObject {
  return { type: "object", properties: { value: moved(schema) }, required: ["value"], additionalProperties: false };
}

/** References from the root of a schema that stands deeper now. */
function moved(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(moved);
  if (!isPlainObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema as JsonObject).map(([word, said]) => [
      word,
      word === "$ref" && typeof said === "string" && said.startsWith("#")
        ? `#/properties/value${said.slice(1)}`
        : moved(said),
    ]),
  );
}

/** Objects take no more than they name, where the schema does not say otherwise: strict providers ask for that. */
function closed(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closed);
  if (!isPlainObject(schema)) return schema;
  const object = schema as JsonObject;
  const parts = Object.entries(object).map(([word, said]) => [word, isValue(word) ? said : closed(said)]);
  const isOpen = isPlainObject(object["properties"]) && object["additionalProperties"] === undefined;
  return Object.fromEntries(
    isOpen && object["type"] === "object" ? [...parts, ["additionalProperties", false]] : parts,
  );
}

/** What stands under these words is a value, not a schema. */
function isValue(word: string): boolean {
  return word === "default" || word === "const" || word === "enum" || word === "examples";
}
