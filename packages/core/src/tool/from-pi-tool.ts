/** Tools written as objects of pi: `{ name, label, description, parameters, execute }`, run unchanged. */
import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { type JsonSchemaInput, type JsonSchemaValidator, jsonSchemaInput } from "./arguments/json-schema.ts";
import { withEnums } from "./definition/model-tool.ts";
import {
  type DefinedTool,
  type GivenBy,
  type ToolCall,
  type ToolRuntime,
  type ToolSpecParts,
  toolSpec,
} from "./definition/tool.ts";
import { snakeCaseOf } from "./definition/tool-name.ts";
import type { ToolResult } from "./result.ts";

/** A tool as a model sees it, in pi's words: `parameters` is a TypeBox schema, or any JSON Schema of an object. */
export interface BareAgentTool<Schema extends object = object> {
  readonly name: string;
  readonly description: string;
  readonly parameters: Schema;
}

/** The type of what a schema takes, where it carries one, as those of TypeBox do. */
export type StaticOf<Schema> = Schema extends { readonly static: infer Args }
  ? Args
  : Readonly<Record<string, unknown>>;

/** What pi's tools give back, and show on the way. Images may be spelled `{ data, mimeType }` or `{ source }`. */
export interface AgentToolResult<Details = unknown> {
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
  /** Ask the agent to end after this set of calls. */
  readonly terminate?: boolean;
}

/** A tool as pi's agents take it. */
export interface AgentTool<Schema extends object = object, Details = unknown> extends BareAgentTool<Schema> {
  readonly label: string;
  /** `sequential` runs alone among the calls of its set. */
  readonly executionMode?: "parallel" | "sequential";
  readonly prepareArguments?: (args: unknown) => unknown;
  execute(
    toolCallId: string,
    params: StaticOf<Schema>,
    signal?: AbortSignal,
    onUpdate?: (partial: AgentToolResult<Details>) => void,
  ): Promise<AgentToolResult<Details>>;
}

/** What pi's objects do not say of themselves. Without it they are `once` and `unclassified`, and have no time limit. */
export interface FromAgentToolOptions
  extends Pick<ToolSpecParts, "effect" | "safety" | "retry" | "timeoutMs" | "execution"> {
  /** Checks arguments by the tool's JSON Schema. Default: ours, which refuses a schema that it does not know whole. */
  readonly validator?: JsonSchemaValidator;
}

const options = optionNames<FromAgentToolOptions>({
  effect: true,
  safety: true,
  retry: true,
  timeoutMs: true,
  execution: true,
  validator: true,
});

/**
 * A tool of ours from one of pi. Its canonical name is snake_case, and the one it came with is kept. Throws `invalid_tool`
 * for parameters that are no object schema, or that nothing can check: arguments are never passed on unchecked.
 */
export function fromAgentTool<Schema extends object, Details = unknown>(
  tool: AgentTool<Schema, Details>,
  given: FromAgentToolOptions = {},
): DefinedTool<string, StaticOf<Schema>, unknown, unknown, unknown, Details> {
  checkOptions("fromAgentTool", given, options, "invalid_tool");
  checkAgentTool(tool);
  const { validator, ...rest } = given;
  const name = snakeCaseOf(tool.name);
  const { executionMode: mode } = tool;
  const spec = toolSpec({
    ...(mode === undefined ? {} : { execution: { mode } }),
    ...rest,
    name,
    ...(name === tool.name ? {} : { originalName: tool.name }),
    label: tool.label,
    description: tool.description,
    input: inputOf(tool.parameters, validator),
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
    gave: (result: ToolResult): result is ToolResult & GivenBy<string, unknown, Details> => result.name === name,
  });
}

type OnUpdate<Details> = ((partial: AgentToolResult<Details>) => void) | undefined;

/** Plain JSON, as the wire needs it, with unions of literals as enums, which every provider takes. */
function inputOf(parameters: object, validator: JsonSchemaValidator | undefined): JsonSchemaInput {
  const { jsonSchema, validate } = jsonSchemaInput(parameters, validator === undefined ? {} : { validator });
  return Object.freeze({ jsonSchema: withEnums(jsonSchema), validate });
}

function checkAgentTool(tool: unknown): void {
  const parts = (typeof tool === "object" && tool !== null ? tool : {}) as Readonly<Record<string, unknown>>;
  const { name, execute, parameters, prepareArguments } = parts;
  const owner = typeof name === "string" ? `the tool ${describeValue(name)}` : "what fromAgentTool got";
  const must = (fits: boolean, part: string, value: unknown, wanted: string): void => {
    if (fits) return;
    throw new StatewrightError("invalid_tool", {
      what: `the ${part} of ${owner} is ${describeValue(value)}`,
      next: `Give ${wanted}`,
    });
  };
  must(typeof name === "string", "name", name, "the name that models call it by");
  must(typeof execute === "function", "execute", execute, "execute(toolCallId, params, signal, onUpdate)");
  const isSchema = typeof parameters === "object" && parameters !== null;
  must(isSchema, "parameters", parameters, "a TypeBox or JSON Schema of an object");
  const mends = prepareArguments === undefined || typeof prepareArguments === "function";
  must(mends, "prepareArguments", prepareArguments, "a function, or nothing");
}
