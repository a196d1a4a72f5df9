/** What the model sees of a tool: name, description and the schema of the arguments it may choose. Written here and nowhere else. */
import { StatewrightError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import { deepFreeze, describeValue, isPlainObject } from "../base/json.ts";
import { parseWith, type Schema, type SchemaIssue } from "../base/schema.ts";
import type { ModelTool } from "../model/model.ts";
import type { ToolSpec } from "./tool.ts";

/** Arguments described by a JSON Schema, which is sent unaltered; `validate` says what is wrong with a value. */
export interface JsonSchemaInput {
  readonly jsonSchema: JsonObject;
  readonly validate: (value: unknown) => readonly SchemaIssue[];
}

const canonicalName = /^[a-z][a-z0-9_]{0,63}$/;

/** Refuse a tool name that some provider would refuse: canonical names are snake_case, 1 to 64 characters. */
export function checkToolName(name: string): void {
  if (typeof name === "string" && canonicalName.test(name)) return;
  throw new StatewrightError("invalid_tool", {
    what: `${describeValue(name)} is not a tool name`,
    next: "Use snake_case: a small letter, then up to 63 small letters, digits and underscores",
  });
}

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

/** Arguments parsed by the tool's schema: what reaches its body, or what the model must mend. Unknown keys are named. */
export function parseArgs(
  spec: ToolSpec,
  args: unknown,
): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issues: readonly SchemaIssue[] } {
  if (!isPlainObject(args)) return { ok: false, issues: [{ path: "", message: "expected an object of arguments" }] };
  if ("jsonSchema" in spec.input) {
    const issues = spec.input.validate(args);
    return issues.length > 0 ? { ok: false, issues } : { ok: true, value: args };
  }
  const unknown = unknownKeys(modelToolOf(spec).inputSchema, args);
  if (unknown.length > 0)
    return { ok: false, issues: unknown.map((key) => ({ path: key, message: "unknown argument" })) };
  return parseWith(spec.input, args);
}

/** Whether a tool has no arguments: an empty text from a model then means that there are none. */
export function takesNothing(spec: ToolSpec): boolean {
  return Object.keys((modelToolOf(spec).inputSchema["properties"] ?? {}) as object).length === 0;
}

function unknownKeys(schema: JsonObject, args: Record<string, unknown>): readonly string[] {
  if (schema["additionalProperties"] !== undefined && schema["additionalProperties"] !== false) return [];
  const known = (schema["properties"] ?? {}) as Record<string, Json>;
  return Object.keys(args).filter((key) => !Object.hasOwn(known, key));
}

function inputSchemaOf(spec: ToolSpec): JsonObject {
  let schema: JsonObject | undefined;
  try {
    schema = "jsonSchema" in spec.input ? spec.input.jsonSchema : jsonSchemaOf(spec.input, "throw");
  } catch (cause) {
    throw notAnObject(spec, "its input has a part that JSON Schema cannot say", cause);
  }
  if (schema === undefined) throw notAnObject(spec, "its input cannot say what it takes as JSON Schema", undefined);
  if (schema["type"] !== "object") throw notAnObject(spec, "its input is not an object", undefined);
  return schema;
}

function notAnObject(spec: ToolSpec, why: string, cause: unknown): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `the tool "${spec.name}" cannot be shown to a model: ${why}`,
    next: "Describe its arguments with z.object({ … }) of plain types, or with a JSON Schema",
    place: { tool: spec.name },
    cause,
  });
}
