/** Creates the definition of a tool for models: name, description and argument schema. The only place that does so. */

import { StatewrightError } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import { checkChoice } from "../../base/options.ts";
import type { Schema } from "../../base/schema.ts";
import { isSchema } from "../../base/schema.ts";
import type { ModelTool } from "../../model/model.ts";

/** A tool, as far as its definition for models is concerned. */
export interface DescribedTool {
  readonly name: string;
  readonly description: string;
  readonly input: Schema | { readonly jsonSchema: JsonObject };
  readonly strict?: boolean | undefined;
}

const modelTools: WeakMap<DescribedTool, ModelTool> = new WeakMap();

/**
 * Returns the model's definition of a tool, cached per spec. Throws `invalid_tool` when JSON Schema cannot represent
 * the input as an object.
 */
export function toModelTool(spec: DescribedTool): ModelTool {
  const known = modelTools.get(spec);
  if (known !== undefined) return known;
  const { name, description, strict } = spec;
  const tool = Object.freeze({
    name,
    description,
    inputSchema: createInputSchema(spec),
    ...(strict === undefined ? {} : { strict }),
  });
  modelTools.set(spec, tool);
  return tool;
}

/** Part of a schema that supports Standard JSON Schema, such as a zod schema. */
interface DescribingSchema {
  readonly jsonSchema?: {
    readonly input: (options: {
      readonly target: "draft-2020-12";
      readonly libraryOptions: { readonly unrepresentable: "any" | "throw" };
    }) => Readonly<Record<string, unknown>>;
  };
}

/** JSON Schemas by schema, per treatment of a part that JSON Schema cannot represent. */
const jsonSchemas = {
  any: new WeakMap<Schema, JsonObject | undefined>(),
  throw: new WeakMap<Schema, JsonObject | undefined>(),
};

/**
 * Returns the JSON Schema of a schema's input, without `$schema`; undefined for a validator without JSON Schema. A
 * part that JSON Schema cannot represent becomes `{}`, or throws. Cached per schema: an interrupt, a fingerprint and a
 * check share a single conversion.
 */
export function toJsonSchema(schema: Schema, unrepresentable: "any" | "throw" = "any"): JsonObject | undefined {
  if (!isSchema(schema)) throw invalidOption({ where: "toJsonSchema", expected: "a schema", got: schema });
  checkChoice("toJsonSchema", { unrepresentable }, ["any", "throw"]);
  const known = jsonSchemas[unrepresentable];
  if (!known.has(schema)) known.set(schema, convertSchema(schema, unrepresentable));
  return known.get(schema);
}

function convertSchema(schema: Schema, unrepresentable: "any" | "throw"): JsonObject | undefined {
  const { jsonSchema } = schema["~standard"] as Schema["~standard"] & DescribingSchema;
  const converted = jsonSchema?.input({ target: "draft-2020-12", libraryOptions: { unrepresentable } });
  if (converted === undefined) return undefined;
  const { $schema: _dialect, ...rest } = converted;
  return deepFreeze(JSON.parse(JSON.stringify(rest)) as JsonObject);
}

function createInputSchema(spec: DescribedTool): JsonObject {
  let schema: JsonObject | undefined;
  try {
    schema = "jsonSchema" in spec.input ? spec.input.jsonSchema : toModelSchema(spec.input);
  } catch (cause) {
    throw createInputError(spec, "JSON Schema cannot represent a part of its input", cause);
  }
  if (schema === undefined)
    throw createInputError(spec, "its input schema does not support JSON Schema", undefined, getWrapperFix(spec.input));
  if (schema["type"] !== "object") throw createInputError(spec, "its input is not an object", undefined);
  return schema;
}

function toModelSchema(input: Schema): JsonObject | undefined {
  const schema = toJsonSchema(input, "throw");
  return schema === undefined ? undefined : toEnumSchema(schema);
}

/**
 * Converts unions of literals to `enum`, at every depth, because some providers refuse unions of constants. Other
 * parts stay unchanged.
 */
export function toEnumSchema(schema: JsonObject): JsonObject {
  return deepFreeze(convertUnions(schema) as JsonObject);
}

function convertUnions(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(convertUnions);
  if (!isPlainObject(schema)) return schema;
  const parts = Object.entries(schema as JsonObject).map(([keyword, operand]) => [
    keyword,
    isValueKeyword(keyword) ? operand : convertUnions(operand),
  ]);
  const { anyOf, ...rest } = Object.fromEntries(parts) as JsonObject;
  if (anyOf === undefined) return rest;
  const alternatives = Array.isArray(anyOf) ? (anyOf as readonly Json[]) : [];
  const values = alternatives.flatMap((each) => listLiterals(each) ?? []);
  if (values.length === 0 || alternatives.some((each) => listLiterals(each) === undefined)) return { anyOf, ...rest };
  const [type, ...others] = new Set(alternatives.map((each) => (each as JsonObject)["type"]));
  return { ...(others.length === 0 && type !== undefined ? { type } : {}), enum: values, ...rest };
}

/** Returns true for keywords with a value instead of a schema. */
export function isValueKeyword(keyword: string): boolean {
  return keyword === "default" || keyword === "const" || keyword === "enum" || keyword === "examples";
}

/** Returns the values of a schema that consists of literals only. */
function listLiterals(schema: Json): readonly Json[] | undefined {
  if (!isPlainObject(schema)) return undefined;
  const { const: only, enum: several, type: _type, ...rest } = schema as JsonObject;
  if (Object.keys(rest).length > 0) return undefined;
  if (only !== undefined) return [only];
  return Array.isArray(several) ? (several as readonly Json[]) : undefined;
}

/** Returns the fix for a validator whose JSON Schema is in another package. */
function getWrapperFix(input: DescribedTool["input"]): string | undefined {
  const vendor = "~standard" in input ? input["~standard"].vendor : undefined;
  if (vendor !== "valibot") return undefined;
  return 'Wrap the schema: input: toStandardJsonSchema(schema), from the package "@valibot/to-json-schema"';
}

function createInputError(
  spec: DescribedTool,
  reason: string,
  cause: unknown,
  fix: string = "Declare its arguments with z.object({ … }) of plain types, or with a JSON Schema",
): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `the tool "${spec.name}" cannot be advertised to a model: ${reason}`,
    next: fix,
    place: { tool: spec.name },
    cause,
  });
}
