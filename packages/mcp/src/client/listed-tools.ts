/**
 * Entries of a listed page of tools, validated one by one: the schema of the SDK refuses the whole page for one
 * malformed entry.
 */
import { type Tool as McpToolDefinition, type StandardSchemaV1, specTypeSchemas } from "@modelcontextprotocol/client";
import { isJsonObject, isNestedDeeper } from "@statewright/json-schema";
import { maxDefinitionDepth, type RefusedMcpTool } from "./mcp-tools.ts";

/** Tools of a server: definitions, and entries that are not tool definitions. */
export interface ListedTools {
  readonly definitions: readonly McpToolDefinition[];
  readonly malformed: readonly RefusedMcpTool[];
}

/** Page of a tool list with unchecked entries. */
interface ToolPage {
  readonly tools: readonly unknown[];
  readonly nextCursor: string | undefined;
}

/** Accepts a page with a list of entries of any kind. */
export const toolPageSchema: StandardSchemaV1<unknown, ToolPage> = {
  "~standard": {
    version: 1,
    vendor: "statewright",
    validate: (value) => {
      if (!isJsonObject(value) || !Array.isArray(value["tools"])) return { issues: [{ message: "tools is no list" }] };
      const { tools, nextCursor } = value as { readonly tools: readonly unknown[]; readonly nextCursor?: unknown };
      if (nextCursor !== undefined && typeof nextCursor !== "string")
        return { issues: [{ message: "nextCursor is no text" }] };
      return { value: { tools, nextCursor } };
    },
  },
};

/** Parses an entry; `position` names an entry without a name, from 1. */
export function parseListedTool(
  entry: unknown,
  position: number,
): { readonly definition: McpToolDefinition } | { readonly malformed: RefusedMcpTool } {
  const name = isJsonObject(entry) && typeof entry["name"] === "string" ? entry["name"] : `tool ${position}`;
  // The validation is recursive.
  if (isNestedDeeper(entry, maxDefinitionDepth))
    return { malformed: { name, reason: `the definition is nested deeper than ${maxDefinitionDepth} levels` } };
  const parsed = specTypeSchemas.Tool["~standard"].validate(entry);
  if (parsed.issues === undefined) return { definition: parsed.value };
  const [issue] = parsed.issues;
  const path = (issue?.path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
  return { malformed: { name, reason: `${path === "" ? "the definition" : path}: ${issue?.message ?? "is invalid"}` } };
}
