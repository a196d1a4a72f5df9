/** Conversion of MCP tool definitions to tools: names in snake_case, and safety from the options and the hints. */
import type { Tool as McpToolDefinition } from "@modelcontextprotocol/client";
import { isStatewrightError, StatewrightError, type ToolSafety } from "@statewright/core";
import { invalidOption, type JsonSchemaInput, type ToolSpecParts, toSnakeCase } from "@statewright/core/adapter";
import { ajvValidator, isNestedDeeper, jsonSchema } from "@statewright/json-schema";
import { createPin } from "./pins.ts";

/** Options of all tools of a server, or of a tool. */
export type McpToolOptions = Pick<
  ToolSpecParts,
  "effect" | "safety" | "retry" | "timeoutMs" | "graceMs" | "onError" | "limits" | "execution"
>;

/** Settings for the conversion of definitions. */
export interface ToolSettings {
  readonly server: string;
  /** Prefix of every name. */
  readonly prefix: string;
  /** Names of the tools to use, as named by the server; undefined for all. */
  readonly only: readonly string[] | undefined;
  readonly trustHints: boolean;
  readonly common: McpToolOptions;
  readonly byName: Readonly<Record<string, McpToolOptions>>;
}

/** Converted tool of an MCP server. */
export interface McpTool {
  readonly definition: McpToolDefinition;
  /** Digest of the definition. */
  readonly pin: string;
  readonly parts: ToolSpecParts & { readonly input: JsonSchemaInput };
  /** Validates a structured result; undefined without an output schema. */
  readonly check: ReturnType<typeof ajvValidator> | undefined;
}

/** Unusable tool, with the reason. */
export interface RefusedMcpTool {
  readonly name: string;
  readonly reason: string;
}

/** Maximum length of a definition as JSON, and maximum nesting depth. */
const maxDefinitionLength = 262_144;
export const maxDefinitionDepth = 64;

/**
 * Creates the tools of a server. Returns unusable definitions in `refused`. Throws `invalid_tool` for two tools with
 * the same name.
 */
export function createMcpTools(
  definitions: readonly McpToolDefinition[],
  settings: ToolSettings,
): { readonly tools: readonly McpTool[]; readonly refused: readonly RefusedMcpTool[] } {
  const { only } = settings;
  const tools: McpTool[] = [];
  const refused: RefusedMcpTool[] = [];
  const originalNames = new Map<string, string>();
  for (const definition of definitions) {
    if (only !== undefined && !only.includes(definition.name)) continue;
    const tool = createMcpTool(definition, settings);
    if (typeof tool === "string") {
      refused.push({ name: definition.name, reason: tool });
      continue;
    }
    const other = originalNames.get(tool.parts.name);
    if (other !== undefined) throw createCollisionError(settings.server, tool.parts.name, other, definition.name);
    originalNames.set(tool.parts.name, definition.name);
    tools.push(tool);
  }
  return { tools, refused };
}

function createMcpTool(definition: McpToolDefinition, settings: ToolSettings): McpTool | string {
  const { name: originalName, title, annotations = {}, description, inputSchema, outputSchema, execution } = definition;
  if (execution?.taskSupport === "required") return "task execution, which the tool requires, is not supported";
  if (isNestedDeeper(definition, maxDefinitionDepth))
    return `the definition is nested deeper than ${maxDefinitionDepth} levels`;
  const size = JSON.stringify(definition).length;
  if (size > maxDefinitionLength) return `the definition has ${size} characters, the maximum is ${maxDefinitionLength}`;
  const label = title ?? annotations.title;
  try {
    const { effect, safety, ...otherParts } = { ...settings.common, ...settings.byName[originalName] };
    const name = toSnakeCase(settings.prefix === "" ? originalName : `${settings.prefix}_${originalName}`);
    return {
      definition,
      pin: createPin(definition),
      parts: {
        ...otherParts,
        name,
        ...(name === originalName ? {} : { originalName }),
        ...(label === undefined || label === "" ? {} : { label }),
        description: description ?? label ?? originalName,
        input: jsonSchema(inputSchema),
        effect: resolveEffect(definition, settings, effect),
        safety: resolveSafety(definition, settings, safety),
      },
      check: outputSchema === undefined ? undefined : ajvValidator(outputSchema as Parameters<typeof ajvValidator>[0]),
    };
  } catch (error) {
    if (isStatewrightError(error, "invalid_tool")) return error.message;
    throw error;
  }
}

type Hints = NonNullable<McpToolDefinition["annotations"]>;

/**
 * Resolves the safety: hints of the server can make a tool less safe than the options, and safer only with
 * `trustHints`.
 */
function resolveSafety(
  { name, annotations = {} }: McpToolDefinition,
  { trustHints, byName }: ToolSettings,
  configured: ToolSpecParts["safety"],
): ToolSafety {
  const override = byName[name]?.safety;
  const hinted = getHintedAccess(annotations, { trustHints });
  const access = override?.access ?? selectStricter(configured?.access, hinted);
  return { network: !(trustHints && annotations.openWorldHint === false), ...configured, ...override, access };
}

/** Per the MCP standard a tool without hints is destructive. */
function getHintedAccess(
  { readOnlyHint, destructiveHint }: Hints,
  { trustHints }: Pick<ToolSettings, "trustHints">,
): Access {
  if (!trustHints) return destructiveHint === true && readOnlyHint !== true ? "destructive" : undefined;
  if (readOnlyHint === true) return "read";
  return destructiveHint === false ? "write" : "destructive";
}

type Access = ToolSafety["access"] | undefined;

const strictness = ["read", "write", "destructive"];

function selectStricter(configured: Access, hinted: Access): ToolSafety["access"] {
  if (configured === undefined || configured === "unclassified") return hinted ?? "destructive";
  return hinted !== undefined && strictness.indexOf(hinted) > strictness.indexOf(configured) ? hinted : configured;
}

function resolveEffect(
  { name, annotations = {} }: McpToolDefinition,
  { trustHints, byName }: ToolSettings,
  configured: ToolSpecParts["effect"],
): NonNullable<ToolSpecParts["effect"]> {
  const { readOnlyHint, idempotentHint } = annotations;
  const override = byName[name]?.effect;
  if (override !== undefined) return override;
  if (configured !== undefined) return idempotentHint === false && readOnlyHint !== true ? "once" : configured;
  return trustHints && (readOnlyHint === true || idempotentHint === true) ? "idempotent" : "once";
}

/** Throws `invalid_option` for options of tools that the server does not have. */
export function checkToolNames(
  { server, only = [], byName }: ToolSettings,
  definitions: readonly Pick<McpToolDefinition, "name">[],
): void {
  const named = [...only, ...Object.keys(byName)];
  const known = definitions.map(({ name }) => name);
  const unknown = named.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw invalidOption({
    where: `connectMcp of MCP server "${server}"`,
    expected: "names of its tools",
    found: unknown.map((name) => `"${name}"`).join(", "),
    fix:
      known.length === 0
        ? "Remove the tool names: the server has no tools"
        : `Use the tools ${known.map((name) => `"${name}"`).join(", ")}`,
  });
}

function createCollisionError(server: string, name: string, firstName: string, secondName: string): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `two tools of MCP server "${server}" have the name "${name}": "${firstName}" and "${secondName}"`,
    next: "Use only one of them: only: [name, …]",
    place: { tool: name },
  });
}
