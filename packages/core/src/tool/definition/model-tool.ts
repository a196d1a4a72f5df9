/** What the model sees of a tool: name, description and the schema of the arguments it may choose. Written here and nowhere else. */
import { StatewrightError } from "../../base/errors.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import type { Schema } from "../../base/schema.ts";
import type { ModelTool } from "../../model/model.ts";
import type { ToolSpec } from "./tool.ts";

const made: WeakMap<ToolSpec, ModelTool> = new WeakMap();

/** The tool as the model sees it. Throws `invalid_tool` when the input is not an object schema that JSON Schema can say. */
export function modelToolOf(spec: ToolSpec): ModelTool {
  const known = made.get(spec);
  if (known !== undefined) return known;
  const tool = Object.freeze({ name: spec.name, description: spec.description, inputSchema: inputSchemaOf(spec) });
  made.set(spec, tool);
  return tool;
}

/** What a schema offers that speaks Standard JSON Schema, as those of zod do. */
interface Describing {
  readonly jsonSchema?: {
    readonly input: (options: {
      readonly target: "draft-2020-12";
      readonly libraryOptions: { readonly unrepresentable: "any" | "throw" };
    }) => Readonly<Record<string, unknown>>;
  };
}

/**
 * The JSON Schema of what a schema takes as input, without its dialect mark; undefined for a validator that gives none. A
 * part that JSON Schema cannot say stands as anything, or throws.
 */
export function jsonSchemaOf(schema: Schema, unrepresentable: "any" | "throw" = "any"): JsonObject | undefined {
  const { jsonSchema } = schema["~standard"] as Schema["~standard"] & Describing;
  const said = jsonSchema?.input({ target: "draft-2020-12", libraryOptions: { unrepresentable } });
  if (said === undefined) return undefined;
  const { $schema: _dialect, ...rest } = said;
  return deepFreeze(JSON.parse(JSON.stringify(rest)) as JsonObject);
}

function inputSchemaOf(spec: ToolSpec): JsonObject {
  let schema: JsonObject | undefined;
  try {
    schema = "jsonSchema" in spec.input ? spec.input.jsonSchema : shownOf(spec.input);
  } catch (cause) {
    throw notAnObject(spec, "its input has a part that JSON Schema cannot say", cause);
  }
  if (schema === undefined) throw notAnObject(spec, "its input cannot say what it takes as JSON Schema", undefined);
  if (schema["type"] !== "object") throw notAnObject(spec, "its input is not an object", undefined);
  return schema;
}

function shownOf(input: Schema): JsonObject | undefined {
  const schema = jsonSchemaOf(input, "throw");
  return schema === undefined ? undefined : withEnums(schema);
}

/** Unions of literals as `enum`, at every depth: some providers refuse a list of constants. Everything else stays. */
export function withEnums(schema: JsonObject): JsonObject {
  return deepFreeze(enumsIn(schema) as JsonObject);
}

function enumsIn(schema: Json): Json {
  if (Array.isArray(schema)) return schema.map(enumsIn);
  if (!isPlainObject(schema)) return schema;
  const parts = Object.entries(schema as JsonObject).map(([word, said]) => [word, isData(word) ? said : enumsIn(said)]);
  const { anyOf, ...rest } = Object.fromEntries(parts) as JsonObject;
  if (anyOf === undefined) return rest;
  const alternatives = Array.isArray(anyOf) ? (anyOf as readonly Json[]) : [];
  const values = alternatives.flatMap((each) => literalsOf(each) ?? []);
  if (values.length === 0 || alternatives.some((each) => literalsOf(each) === undefined)) return { anyOf, ...rest };
  const [type, ...others] = new Set(alternatives.map((each) => (each as JsonObject)["type"]));
  return { ...(others.length === 0 && type !== undefined ? { type } : {}), enum: values, ...rest };
}

/** What stands under these words is a value, not a schema. */
function isData(word: string): boolean {
  return word === "default" || word === "const" || word === "enum" || word === "examples";
}

/** The values of a schema that is nothing but literals. */
function literalsOf(schema: Json): readonly Json[] | undefined {
  if (!isPlainObject(schema)) return undefined;
  const { const: only, enum: several, type: _type, ...rest } = schema as JsonObject;
  if (Object.keys(rest).length > 0) return undefined;
  if (only !== undefined) return [only];
  return Array.isArray(several) ? (several as readonly Json[]) : undefined;
}

function notAnObject(spec: ToolSpec, why: string, cause: unknown): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `the tool "${spec.name}" cannot be shown to a model: ${why}`,
    next: "Describe its arguments with z.object({ … }) of plain types, or with a JSON Schema",
    place: { tool: spec.name },
    cause,
  });
}
