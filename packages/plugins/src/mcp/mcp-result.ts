/** What a server answered to a call, as the output of a tool. */
import type { CallToolResult, ContentBlock as McpBlock } from "@modelcontextprotocol/client";
import { type ArtifactDraft, type ContentBlock, type Json, ToolError, type ToolOutput } from "@statewright/core";

type SchemaCheck = (value: unknown) => readonly { readonly path: string; readonly message: string }[];

/** What stands in a result's content: blocks that a model reads, and what is kept whole beside them. */
export interface McpContent {
  readonly content: readonly ContentBlock[];
  readonly artifacts: readonly ArtifactDraft[];
}

/**
 * The output of a call: what the server says of its result's value is checked by `check`, where its tool declares a schema.
 * What stands in `_meta` is for people, in the details.
 */
export function outputOfResult(result: CallToolResult, tool: string, check: SchemaCheck | undefined): ToolOutput {
  const { structuredContent: value, isError = false, _meta: meta } = result;
  if (check !== undefined && !isError) checkValue(tool, value, check);
  const { content, artifacts } = contentOfBlocks(result.content);
  const isBare = content.length === 0 && artifacts.length === 0 && value !== undefined;
  return {
    content: isBare ? [{ type: "json", value: value as Json }] : content,
    ...(value === undefined ? {} : { value }),
    ...(artifacts.length === 0 ? {} : { artifacts }),
    ...(meta === undefined ? {} : { details: { meta } }),
    isError,
  };
}

function checkValue(tool: string, value: unknown, check: SchemaCheck): void {
  if (value === undefined)
    throw new ToolError("invalid_output", `The tool "${tool}" has an output schema and gave no structured content.`);
  const issues = check(value);
  if (issues.length === 0) return;
  const said = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  throw new ToolError("invalid_output", `What the tool "${tool}" gave does not fit its output schema: ${said}.`);
}

/** Blocks of MCP as ours. Texts that stand together stay apart: each is one part of what was said. */
export function contentOfBlocks(blocks: readonly McpBlock[]): McpContent {
  const content: ContentBlock[] = [];
  const artifacts: ArtifactDraft[] = [];
  const keep = (name: string, mimeType: string, data: string): void => {
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
        keep(`audio_${artifacts.length + 1}`, block.mimeType, block.data);
        break;
      case "resource": {
        const { resource } = block;
        if ("text" in resource) content.push({ type: "text", text: `Resource ${resource.uri}:\n${resource.text}` });
        else keep(nameOf(resource.uri), resource.mimeType ?? "application/octet-stream", resource.blob);
        break;
      }
      case "resource_link": {
        const { uri, title, name, description, mimeType } = block;
        const said = [`Resource ${uri}: ${title ?? name}`, mimeType, description].filter((part) => part !== undefined);
        content.push({ type: "text", text: said.join(", ") });
        break;
      }
    }
  }
  return { content, artifacts };
}

/** The last part of an address, as the name of a file. */
function nameOf(uri: string): string {
  const path = URL.parse(uri)?.pathname ?? uri;
  return path.split("/").findLast((part) => part !== "") ?? "resource";
}
