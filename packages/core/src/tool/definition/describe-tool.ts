/**
 * Describes tools as plain data for people, audits and pages. Hidden arguments are listed by name and kind, never by
 * value.
 */

import { deepFreeze, type Json, type JsonObject } from "../../base/json.ts";
import { checkToolOption } from "./check-tool-spec.ts";
import { toJsonSchema, toModelTool } from "./model-tool.ts";
import type { Tool, ToolSpec } from "./tool.ts";

/** Description of a tool, as listed by `describe()` of a registry. */
export interface ToolDescription {
  readonly name: string;
  /** Name of the tool at its origin. */
  readonly originalName?: string;
  /** Names advertised to the models of specific providers. */
  readonly aliases?: Readonly<Record<string, string>>;
  readonly label: string;
  readonly description: string;
  /** JSON Schema of the arguments chosen by the model. */
  readonly input: JsonObject;
  /** JSON Schema of the result value, if the declared schema supports JSON Schema. */
  readonly output?: JsonObject;
  /** Hidden arguments: kind by name. */
  readonly inject: ToolSpec["inject"];
  readonly effect: ToolSpec["effect"];
  readonly safety: JsonObject;
  /** Retry policy; functions read as "custom". */
  readonly retry?: JsonObject;
  readonly timeoutMs?: number;
}

/** Returns the description of a tool as frozen plain data. */
export function describeTool(tool: Pick<Tool<never, never>, "spec">): ToolDescription {
  checkToolOption("describeTool", tool);
  const { spec } = tool;
  const { name, originalName, label, description, inject, effect, timeoutMs } = spec;
  const output = spec.output === undefined ? undefined : toJsonSchema(spec.output);
  return deepFreeze({
    name,
    ...(originalName === undefined ? {} : { originalName }),
    label,
    description,
    input: toModelTool(spec).inputSchema,
    ...(output === undefined ? {} : { output }),
    inject: { ...inject },
    effect,
    safety: toPlainJson(spec.safety),
    ...(spec.retry === undefined ? {} : { retry: toPlainJson(spec.retry) }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
}

/** Converts an object to JSON; functions become "custom". */
function toPlainJson(source: object): JsonObject {
  return JSON.parse(
    JSON.stringify(source, (_key, value: unknown): Json => (typeof value === "function" ? "custom" : (value as Json))),
  ) as JsonObject;
}
