/** Adapter for tools of pi: objects `{ name, label, description, parameters, execute }`, run unchanged. */

import { invalidOption } from "../base/invalid-option.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import { type JsonSchemaInput, type JsonSchemaValidator, jsonSchemaInput } from "./arguments/json-schema.ts";
import { toEnumSchema } from "./definition/model-tool.ts";
import {
  type DefinedTool,
  type ToolCall,
  type ToolResultData,
  type ToolRuntime,
  type ToolSpecParts,
  toolSpec,
} from "./definition/tool.ts";
import { toSnakeCase } from "./definition/tool-name.ts";
import type { ToolResult } from "./result.ts";

/** Advertised part of a pi tool. `parameters` is a TypeBox schema or a JSON Schema of an object. */
export interface BarePiTool<Schema extends object = object> {
  readonly name: string;
  readonly description: string;
  readonly parameters: Schema;
}

/** Argument type of a schema with a static type, such as a TypeBox schema. */
export type StaticOf<Schema> = Schema extends { readonly static: infer Args }
  ? Args
  : Readonly<Record<string, unknown>>;

/** Result or partial result of a pi tool. Images are `{ data, mimeType }` or `{ source }`. */
export interface PiToolResult<Details = unknown> {
  readonly content: readonly (
    | { readonly type: "text"; readonly text: string }
    | { readonly type: "image"; readonly data: string; readonly mimeType: string }
    | {
        readonly type: "image";
        readonly source: { readonly type: "base64"; readonly media_type: string; readonly data: string };
      }
  )[];
  readonly details?: Details;
  readonly isError?: boolean;
  /** Requests the end of the agent after this batch of calls. */
  readonly terminate?: boolean;
}

/** A tool of pi. */
export interface PiTool<Schema extends object = object, Details = unknown> extends BarePiTool<Schema> {
  readonly label: string;
  /** `sequential` runs alone among the calls of its batch. */
  readonly executionMode?: "parallel" | "sequential";
  /** Converts the arguments of a model before their validation. */
  readonly prepareArguments?: (args: unknown) => unknown;
  /** Executes a call with validated arguments. */
  execute(
    toolCallId: string,
    params: StaticOf<Schema>,
    signal?: AbortSignal,
    onUpdate?: (partial: PiToolResult<Details>) => void,
  ): Promise<PiToolResult<Details>>;
}

/** Properties missing in pi tools. Defaults: effect `once`, safety `unclassified`, no timeout. */
export interface FromPiToolOptions
  extends Pick<ToolSpecParts, "effect" | "safety" | "retry" | "timeoutMs" | "execution"> {
  /**
   * Validator of the tool's JSON Schema. Default: the built-in checker, which refuses schemas with unknown keywords.
   */
  readonly validator?: JsonSchemaValidator;
}

const optionKeys = listOptionNames<FromPiToolOptions>({
  effect: true,
  safety: true,
  retry: true,
  timeoutMs: true,
  execution: true,
  validator: true,
});

/**
 * Converts a pi tool. The canonical name is the name in snake_case; the original name is kept. Throws `invalid_tool`
 * for parameters without an object schema or with an unsupported schema, because arguments are never passed
 * unchecked.
 */
export function fromPiTool<Schema extends object, Details = unknown>(
  tool: PiTool<Schema, Details>,
  options: FromPiToolOptions = {},
): DefinedTool<string, StaticOf<Schema>, unknown, unknown, unknown, Details> {
  checkOptions("fromPiTool", options, optionKeys, { code: "invalid_tool" });
  checkPiTool(tool);
  const { validator, ...rest } = options;
  const name = toSnakeCase(tool.name);
  const { executionMode: mode } = tool;
  const spec = toolSpec({
    ...(mode === undefined ? {} : { execution: { mode } }),
    ...rest,
    name,
    ...(name === tool.name ? {} : { originalName: tool.name }),
    label: tool.label,
    description: tool.description,
    input: createInput(tool.parameters, validator),
  });
  return Object.freeze({
    name,
    spec,
    call: (_state: unknown, { callId, signal, update }: ToolRuntime, call: ToolCall) =>
      tool.execute(callId, call.args as StaticOf<Schema>, signal, update as OnUpdate<Details>),
    ...(tool.prepareArguments === undefined
      ? {}
      : { prepareArguments: (args: unknown) => tool.prepareArguments?.(args) }),
    is: (call: ToolCall): call is ToolCall<StaticOf<Schema>> & { readonly name: string } => call.name === name,
    isResult: (result: ToolResult): result is ToolResult & ToolResultData<string, unknown, Details> =>
      result.name === name,
  });
}

type OnUpdate<Details> = ((partial: PiToolResult<Details>) => void) | undefined;

/**
 * Converts parameters to plain JSON Schema for providers: unions of literals become enums, which every provider
 * supports.
 */
function createInput(parameters: object, validator: JsonSchemaValidator | undefined): JsonSchemaInput {
  const { jsonSchema, validate } = jsonSchemaInput(parameters, validator === undefined ? {} : { validator });
  return Object.freeze({ jsonSchema: toEnumSchema(jsonSchema), validate });
}

function checkPiTool(tool: unknown): void {
  const parts = (typeof tool === "object" && tool !== null ? tool : {}) as Readonly<Record<string, unknown>>;
  const { name, execute, parameters, prepareArguments } = parts;
  const owner = typeof name === "string" ? `the tool ${describeValue(name)}` : "the argument of fromPiTool";
  const expectPart = (
    part: string,
    value: unknown,
    expected: string,
    { isValid }: { readonly isValid: boolean },
  ): void => {
    if (isValid) return;
    throw invalidOption({ where: owner, option: part, expected, got: value, code: "invalid_tool" });
  };
  expectPart("name", name, "a string, the name of the tool", { isValid: typeof name === "string" });
  expectPart("execute", execute, "execute(toolCallId, params, signal, onUpdate)", {
    isValid: typeof execute === "function",
  });
  const isSchema = typeof parameters === "object" && parameters !== null;
  expectPart("parameters", parameters, "a TypeBox schema or JSON Schema of an object", { isValid: isSchema });
  const isPrepareValid = prepareArguments === undefined || typeof prepareArguments === "function";
  expectPart("prepareArguments", prepareArguments, "a function, or nothing", { isValid: isPrepareValid });
}
