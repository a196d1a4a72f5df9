/** Conversion of MCP tool results to tool output. */
import type { CallToolResult, ContentBlock as McpBlock } from "@modelcontextprotocol/client";
import { type ArtifactDraft, type ContentBlock, type Json, ToolError, type ToolOutput } from "@statewright/core";

type SchemaCheck = (value: unknown) => readonly { readonly path: string; readonly message: string }[];

/** Content of a result: blocks for the model, and artifacts with the complete binary data. */
export interface McpContent {
  readonly content: readonly ContentBlock[];
  readonly artifacts: readonly ArtifactDraft[];
}

/**
 * Converts a result to tool output. `check` validates the structured content of a tool with an output schema. `_meta`
 * goes into the details, for people.
 */
export function toToolOutput(result: CallToolResult, tool: string, check: SchemaCheck | undefined): ToolOutput {
  const { structuredContent: value, isError = false, _meta: meta } = result;
  if (check !== undefined && !isError) checkValue(tool, value, check);
  const { content, artifacts } = toContent(result.content);
  const hasValueOnly = content.length === 0 && artifacts.length === 0 && value !== undefined;
  return {
    content: hasValueOnly ? [{ type: "json", value: value as Json }] : content,
    ...(value === undefined ? {} : { value }),
    ...(artifacts.length === 0 ? {} : { artifacts }),
    ...(meta === undefined ? {} : { details: { meta } }),
    isError,
  };
}

function checkValue(tool: string, value: unknown, check: SchemaCheck): void {
  if (value === undefined)
    throw new ToolError("invalid_output", `Tool "${tool}" has an output schema, but returned no structured content.`);
  const issues = check(value);
  if (issues.length === 0) return;
  const problems = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  throw new ToolError("invalid_output", `The result of tool "${tool}" does not match its output schema: ${problems}.`);
}

/** Converts MCP blocks to content blocks. Adjacent text blocks stay separate. */
export function toContent(blocks: readonly McpBlock[]): McpContent {
  const content: ContentBlock[] = [];
  const artifacts: ArtifactDraft[] = [];
  const addMedia = (name: string, mimeType: string, data: string): void => {
    if (mimeType.startsWith("image/")) content.push({ type: "image", mimeType, data });
    else artifacts.push({ name, mimeType, body: Buffer.from(data, "base64") });
  };
  for (const block of blocks) {
    switch (block.type) {
      case "text":
        content.push({ type: "text", text: block.text });
        break;
      case "image":
        content.push({ type: "image", mimeType: block.mimeType, data: block.data });
        break;
      case "audio":
        addMedia(`audio_${artifacts.length + 1}`, block.mimeType, block.data);
        break;
      case "resource": {
        const { resource } = block;
        if ("text" in resource) content.push({ type: "text", text: `Resource ${resource.uri}:\n${resource.text}` });
        else addMedia(getFileName(resource.uri), resource.mimeType ?? "application/octet-stream", resource.blob);
        break;
      }
      case "resource_link": {
        const { uri, title, name, description, mimeType } = block;
        const linkParts = [`Resource ${uri}: ${title ?? name}`, mimeType, description].filter(
          (part) => part !== undefined,
        );
        content.push({ type: "text", text: linkParts.join(", ") });
        break;
      }
    }
  }
  return { content, artifacts };
}

/** Returns the last path segment of a URI as a file name. */
function getFileName(uri: string): string {
  const path = URL.parse(uri)?.pathname ?? uri;
  return path.split("/").findLast((part) => part !== "") ?? "resource";
}
