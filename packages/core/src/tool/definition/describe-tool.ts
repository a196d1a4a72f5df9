/** What is known of a tool, as plain data: for people, audits and pages. Of hidden arguments the names and kinds, never a value. */
import { deepFreeze, type Json, type JsonObject } from "../../base/json.ts";
import { jsonSchemaOf, modelToolOf } from "./model-tool.ts";
import type { Tool, ToolSpec } from "./tool.ts";

/** A tool described: what `describe()` of a registry lists. */
export interface ToolDescription {
  readonly name: string;
  /** What it is called where it comes from. */
  readonly originalName?: string;
  /** Names under which models of single providers see it. */
  readonly aliases?: Readonly<Record<string, string>>;
  readonly label: string;
  readonly description: string;
  /** JSON Schema of the arguments that the model chooses. */
  readonly input: JsonObject;
  /** JSON Schema of the result's value, where the tool declares one that can say so. */
  readonly output?: JsonObject;
  /** Hidden arguments: their kinds by name. */
  readonly inject: ToolSpec["inject"];
  readonly effect: ToolSpec["effect"];
  readonly safety: JsonObject;
  /** Its policy; a function in it is told as "custom". */
  readonly retry?: JsonObject;
  readonly timeoutMs?: number;
}

/** Describe a tool. */
export function describeTool({ spec }: Pick<Tool<never, never>, "spec">): ToolDescription {
  const { name, originalName, label, description, inject, effect, timeoutMs } = spec;
  const output = spec.output === undefined ? undefined : jsonSchemaOf(spec.output);
  return deepFreeze({
    name,
    ...(originalName === undefined ? {} : { originalName }),
    label,
    description,
    input: modelToolOf(spec).inputSchema,
    ...(output === undefined ? {} : { output }),
    inject: { ...inject },
    effect,
    safety: plainFacts(spec.safety),
    ...(spec.retry === undefined ? {} : { retry: plainFacts(spec.retry) }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
}

/** Facts as data: of a function only that there is one. */
function plainFacts(facts: object): JsonObject {
  return JSON.parse(
    JSON.stringify(facts, (_key, fact: unknown): Json => (typeof fact === "function" ? "custom" : (fact as Json))),
  ) as JsonObject;
}
