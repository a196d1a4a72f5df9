/** Tools and their results for MCP clients, and the texts of calls without a result. */
import type { CallToolResult, Tool as McpTool } from "@modelcontextprotocol/server";
import type { ContentBlock, RunResult, Tool, ToolResult } from "@statewright/core";
import { describeTool } from "@statewright/core/inspect";
import { toAnnotations } from "./annotations.ts";
import type { CallRequest } from "./call-request.ts";
import { artifactUri, createErrorResult, toMcpBlocks, toOutputSchema, toStructuredContent } from "./content.ts";
import type { CallState } from "./tool-graph.ts";

/** Converts a tool to an MCP tool: the model's view of the tool, plus annotations. */
export function toMcpTool(tool: Tool<CallState>): McpTool {
  const { name, label, description, input } = describeTool(tool);
  const outputSchema = toOutputSchema(tool.spec.output);
  return {
    name,
    title: label,
    description,
    inputSchema: input as McpTool["inputSchema"],
    ...(outputSchema === undefined ? {} : { outputSchema: outputSchema as NonNullable<McpTool["outputSchema"]> }),
    annotations: toAnnotations(tool.spec),
  };
}

/** Converts the result of a tool. Structured content is limited to `maxBytes`. */
export function toMcpResult(
  tool: Tool<CallState> | undefined,
  result: ToolResult,
  { name, id, maxBytes }: { readonly name: string; readonly id: string; readonly maxBytes: number },
): CallToolResult {
  const getUri = (handle: string): string => artifactUri(name, id, handle);
  const content = result.content.flatMap((block: ContentBlock) => toMcpBlocks(block, getUri));
  if (result.isError) return { content, isError: true };
  const value = toStructuredContent(result.value, maxBytes);
  if (value === undefined && toOutputSchema(tool?.spec.output) !== undefined)
    return createErrorResult(`The result of "${name}" exceeds the size limit of this server. Request less data.`);
  return { content, ...(value === undefined ? {} : { structuredContent: value }) };
}

/** Explains a call whose interrupt cannot be shown to a person. */
export function describeMissingForm(name: string, { canAsk }: Pick<CallRequest, "canAsk">): string {
  const reason = canAsk ? "its interrupt does not fit a form" : "this client does not support elicitation";
  return `"${name}" was not run: it needs the answer of a person, and ${reason}.`;
}

/** Explains an answer to a call that no longer waits. */
export function describeNotWaiting(name: string): string {
  return `No call of "${name}" waits for this answer. Call the tool again.`;
}

/** Explains a call that exceeded its time limit. */
export function describeTimeout(name: string, callMs: number): string {
  return `"${name}" was cancelled after ${callMs} ms.`;
}

/** Explains a run without a tool result. */
export function describeUnfinished(name: string, { status }: Pick<RunResult<unknown>, "status">): string {
  return status === "cancelled" ? "Cancelled" : `"${name}" has no result: its run is ${status}.`;
}
