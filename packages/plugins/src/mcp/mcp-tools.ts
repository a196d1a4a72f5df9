/** Tools as a server defines them, as ours: named in snake_case, with the safety that the user and the hints leave. */
import type { Tool as McpToolDefinition } from "@modelcontextprotocol/client";
import {
  isStatewrightError,
  type JsonSchemaInput,
  StatewrightError,
  snakeCaseOf,
  type ToolSafety,
  type ToolSpecParts,
} from "@statewright/core";
import { ajvValidator, jsonSchema } from "../json-schema.ts";
import { isObject } from "../protocol.ts";
import { pinOf } from "./pins.ts";

/** What is said of calls: of all tools of a server, or of one. */
export type McpToolOptions = Pick<
  ToolSpecParts,
  "effect" | "safety" | "retry" | "timeoutMs" | "graceMs" | "onError" | "limits" | "execution"
>;

/** How tools are made of definitions. */
export interface ToolMaking {
  readonly server: string;
  /** Stands before every name. */
  readonly prefix: string;
  /** The only tools that are taken, by the server's names; all when absent. */
  readonly only: readonly string[] | undefined;
  readonly trustHints: boolean;
  readonly all: McpToolOptions;
  readonly single: Readonly<Record<string, McpToolOptions>>;
}

/** A tool of a server, ready to be called. */
export interface McpTool {
  readonly definition: McpToolDefinition;
  /** The digest of the definition. */
  readonly pin: string;
  readonly parts: ToolSpecParts & { readonly input: JsonSchemaInput };
  /** What is wrong with a structured result; absent where the server declares no schema. */
  readonly check: ReturnType<typeof ajvValidator> | undefined;
}

/** A tool that cannot be taken, and why. */
export interface RefusedMcpTool {
  readonly name: string;
  readonly why: string;
}

/** How large one definition may be, as JSON, and how deep. */
const mostOfDefinition = 262_144;
const deepestDefinition = 64;

/**
 * The tools of a server. One whose definition cannot be used is left out and named; two that would have one name are an
 * `invalid_tool` error.
 */
export function toolsOfDefinitions(
  definitions: readonly McpToolDefinition[],
  making: ToolMaking,
): { readonly tools: readonly McpTool[]; readonly refused: readonly RefusedMcpTool[] } {
  const { only } = making;
  const tools: McpTool[] = [];
  const refused: RefusedMcpTool[] = [];
  const taken = new Map<string, string>();
  for (const definition of definitions) {
    if (only !== undefined && !only.includes(definition.name)) continue;
    const tool = toolOf(definition, making);
    if (typeof tool === "string") {
      refused.push({ name: definition.name, why: tool });
      continue;
    }
    const other = taken.get(tool.parts.name);
    if (other !== undefined) throw collision(making.server, tool.parts.name, other, definition.name);
    taken.set(tool.parts.name, definition.name);
    tools.push(tool);
  }
  return { tools, refused };
}

function toolOf(definition: McpToolDefinition, making: ToolMaking): McpTool | string {
  const { name: originalName, title, annotations = {}, description, inputSchema, outputSchema, execution } = definition;
  if (execution?.taskSupport === "required") return "it can only be run as a task, which is not known here";
  const size = JSON.stringify(definition).length;
  if (size > mostOfDefinition) return `its definition has ${size} characters, more than ${mostOfDefinition}`;
  if (isDeeper(definition, deepestDefinition))
    return `its definition is nested deeper than ${deepestDefinition} levels`;
  const label = title ?? annotations.title;
  try {
    const { effect, safety, ...usual } = { ...making.all, ...making.single[originalName] };
    const name = snakeCaseOf(making.prefix === "" ? originalName : `${making.prefix}_${originalName}`);
    return {
      definition,
      pin: pinOf(definition),
      parts: {
        ...usual,
        name,
        ...(name === originalName ? {} : { originalName }),
        ...(label === undefined || label === "" ? {} : { label }),
        description: description ?? label ?? originalName,
        input: jsonSchema(inputSchema),
        effect: effectOf(definition, making, effect),
        safety: safetyOf(definition, making, safety),
      },
      check: outputSchema === undefined ? undefined : ajvValidator(outputSchema as Parameters<typeof ajvValidator>[0]),
    };
  } catch (error) {
    if (isStatewrightError(error, "invalid_tool")) return error.message;
    throw error;
  }
}

type Hints = NonNullable<McpToolDefinition["annotations"]>;

/** What a server says of itself may make a tool look worse than the user said, and better only where the user trusts it. */
function safetyOf(
  { name, annotations = {} }: McpToolDefinition,
  { trustHints, single }: ToolMaking,
  said: ToolSpecParts["safety"],
): ToolSafety {
  const own = single[name]?.safety;
  const hinted = accessHinted(annotations, trustHints);
  const access = own?.access ?? stricter(said?.access, hinted);
  return { network: !(trustHints && annotations.openWorldHint === false), ...said, ...own, access };
}

/** The standard takes a tool that says nothing for one that may destroy. */
function accessHinted({ readOnlyHint, destructiveHint }: Hints, trustHints: boolean): Access {
  if (!trustHints) return destructiveHint === true && readOnlyHint !== true ? "destructive" : undefined;
  if (readOnlyHint === true) return "read";
  return destructiveHint === false ? "write" : "destructive";
}

type Access = ToolSafety["access"] | undefined;

const strictness = ["read", "write", "destructive"];

function stricter(said: Access, hinted: Access): ToolSafety["access"] {
  if (said === undefined || said === "unclassified") return hinted ?? "destructive";
  return hinted !== undefined && strictness.indexOf(hinted) > strictness.indexOf(said) ? hinted : said;
}

function effectOf(
  { name, annotations = {} }: McpToolDefinition,
  { trustHints, single }: ToolMaking,
  said: ToolSpecParts["effect"],
): NonNullable<ToolSpecParts["effect"]> {
  const { readOnlyHint, idempotentHint } = annotations;
  const own = single[name]?.effect;
  if (own !== undefined) return own;
  if (said !== undefined) return idempotentHint === false && readOnlyHint !== true ? "once" : said;
  return trustHints && (readOnlyHint === true || idempotentHint === true) ? "idempotent" : "once";
}

function isDeeper(value: unknown, levels: number): boolean {
  if (Array.isArray(value)) return levels === 0 || value.some((item) => isDeeper(item, levels - 1));
  if (!isObject(value)) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeper(item, levels - 1));
}

/** Throws `invalid_option` for what is said of tools that the server does not have. */
export function refuseUnknown(
  { server, only = [], single }: ToolMaking,
  definitions: readonly McpToolDefinition[],
): void {
  const named = [...only, ...Object.keys(single)];
  const known = definitions.map(({ name }) => name);
  const unknown = named.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw new StatewrightError("invalid_option", {
    what: `the MCP server "${server}" has no tool ${unknown.map((name) => `"${name}"`).join(", ")}`,
    next: known.length === 0 ? "It offers none" : `Its tools are ${known.map((name) => `"${name}"`).join(", ")}`,
  });
}

function collision(server: string, name: string, one: string, other: string): StatewrightError {
  return new StatewrightError("invalid_tool", {
    what: `two tools of the MCP server "${server}" would be named "${name}": "${one}" and "${other}"`,
    next: "Take only one of them: only: [name, …]",
    place: { tool: name },
  });
}
