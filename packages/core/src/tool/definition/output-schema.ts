/**
 * Output schema of an agent: a JSON Schema for models with an object at the root, and a parser of the model's answer.
 */

import { checkSyncIssues, checkSyncResult, checkSyncSchema } from "../../base/async-schema.ts";
import { argumentBounds, findInvalidData } from "../../base/bounds.ts";
import { describeThrown, type StatewrightError } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { deepFreeze, describeValue, isPlainObject, type Json, type JsonObject } from "../../base/json.ts";
import { describeIssues, isSchema, parseWith, type Schema, type SchemaIssue } from "../../base/schema.ts";
import type { JsonSchemaInput } from "../arguments/json-schema.ts";
import { isValueKeyword, toEnumSchema, toJsonSchema } from "./model-tool.ts";

/** Input of an output schema: a zod schema, another Standard Schema, or a JSON Schema (`jsonSchemaInput`). */
export type OutputInput<Output> = Schema<unknown, Output> | JsonSchemaInput<Output>;

/** Parsed answer of a model: the output or its issues. */
export type ReadOutput<Output> =
  | { readonly ok: true; readonly value: Output }
  | { readonly ok: false; readonly issues: string };

/** A schema of agent outputs. */
export interface OutputSchema<Output = unknown> {
  /** JSON Schema for the model. */
  readonly jsonSchema: JsonObject;
  /** True when the output is not an object: the model's answer then contains the output under `value`. */
  readonly isWrapped: boolean;
  /** Validates an output: returns the parsed output, or its issues as text for the model. */
  readonly read: (value: unknown) => ReadOutput<Output>;
}

const owner = "the output schema";

/**
 * Creates an output schema. Throws `invalid_option` when JSON Schema cannot represent the input, and `async_schema`
 * for an asynchronous schema; `read` throws `async_schema` when only the validation reveals it.
 */
export function outputSchema<Output>(input: OutputInput<Output>): OutputSchema<Output> {
  checkSyncSchema(input, owner);
  const rootSchema = toOutputJsonSchema(input);
  const isObject = rootSchema["type"] === "object";
  const jsonSchema = deepFreeze(closeObjects(isObject ? rootSchema : wrapInValue(rootSchema)) as JsonObject);
  return {
    jsonSchema,
    isWrapped: !isObject,
    read: (value) => {
      const invalid = findInvalidData(value, argumentBounds);
      if (invalid !== undefined) return { ok: false, issues: `the values of the output ${invalid.text}` };
      if (isObject) return parseOutput(input, value);
      if (!isPlainObject(value) || !Object.hasOwn(value, "value"))
        return { ok: false, issues: `expected an object with "value"` };
      return parseOutput(input, value["value"]);
    },
  };
}

function parseOutput<Output>(input: OutputInput<Output>, value: unknown): ReadOutput<Output> {
  if (isSchema(input)) {
    const parsed = parseWith(input as Schema<unknown, Output>, value);
    if (parsed.ok) return parsed;
    checkSyncResult(parsed, owner);
    return { ok: false, issues: describeIssues(parsed.issues) };
  }
  let issues: readonly SchemaIssue[];
  try {
    issues = input.validate(value);
  } catch (thrown) {
    return { ok: false, issues: `the output cannot be read: ${describeThrown(thrown)}` };
  }
  checkSyncIssues(issues, owner);
  if (!Array.isArray(issues))
    return {
      ok: false,
      issues: `the output cannot be read: the validator returned ${describeValue(issues)}, not a list of issues`,
    };
  return issues.length === 0 ? { ok: true, value: value as Output } : { ok: false, issues: describeIssues(issues) };
}

function toOutputJsonSchema(input: OutputInput<unknown>): JsonObject {
  let converted: JsonObject | undefined;
  try {
    if (isSchema(input)) converted = toJsonSchema(input, "throw");
    else if (isPlainObject(input) && isPlainObject(input["jsonSchema"])) converted = input["jsonSchema"] as JsonObject;
  } catch (cause) {
    throw createSchemaError("a schema with a part that JSON Schema cannot represent", cause);
  }
  if (converted === undefined)
    throw createSchemaError(
      isSchema(input) ? "a schema without support for JSON Schema" : describeValue(input),
      undefined,
    );
  return toEnumSchema(converted);
}

function createSchemaError(found: string, cause: unknown): StatewrightError {
  return invalidOption({
    where: "outputSchema",
    expected: "a schema of plain types",
    found,
    fix: "Use a schema of plain types, such as z.object({ … }), or jsonSchemaInput({ … })",
    cause,
  });
}

/** Wraps a schema in an object with the property `value`, because providers require an object at the root. */
function wrapInValue(schema: JsonObject): JsonObject {
  return {
    type: "object",
    properties: { value: rebaseRefs(schema) },
    required: ["value"],
    additionalProperties: false,
  };
}

/** Rebases local references of a schema that moved to `#/properties/value`. */
function rebaseRefs(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(rebaseRefs);
  if (!isPlainObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema as JsonObject).map(([keyword, operand]) => [
      keyword,
      keyword === "$ref" && typeof operand === "string" && operand.startsWith("#")
        ? `#/properties/value${operand.slice(1)}`
        : rebaseRefs(operand),
    ]),
  );
}

/** Adds `additionalProperties: false` to objects without a rule, as strict providers require. */
function closeObjects(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(closeObjects);
  if (!isPlainObject(schema)) return schema;
  const object = schema as JsonObject;
  const parts = Object.entries(object).map(([keyword, operand]) => [
    keyword,
    isValueKeyword(keyword) ? operand : closeObjects(operand),
  ]);
  const isOpen = isPlainObject(object["properties"]) && object["additionalProperties"] === undefined;
  return Object.fromEntries(
    isOpen && object["type"] === "object" ? [...parts, ["additionalProperties", false]] : parts,
  );
}
