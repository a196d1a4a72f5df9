/** Conversion of tool results to MCP content: text, images, files, links to artifacts, and structured content. */
import type { CallToolResult, ContentBlock as McpBlock } from "@modelcontextprotocol/server";
import type { ContentBlock, FileBlock, ImageBlock, Schema } from "@statewright/core";

/** Returns the URI of a stored artifact, for `resources/read`. */
export function artifactUri(tool: string, thread: string, handle: string): string {
  return `${artifactScheme}${tool}/${thread}/${handle}`;
}

/** URI prefix of artifacts. */
export const artifactScheme = "statewright://artifacts/";

/** URI template of artifacts, listed for clients. */
export const artifactTemplate: string = `${artifactScheme}{tool}/{thread}/{handle}`;

/** Converts a content block to MCP blocks. An artifact becomes its preview and a link to the full content. */
export function toMcpBlocks(block: ContentBlock, getUri: (handle: string) => string): readonly McpBlock[] {
  switch (block.type) {
    case "text":
      return [createTextBlock(block.text)];
    case "json":
      return [createTextBlock(JSON.stringify(block.value))];
    case "image":
      if (block.data !== undefined && block.mimeType !== "image/*")
        return [{ type: "image", data: block.data, mimeType: block.mimeType }];
      return [toMediaBlock(block, "image")];
    case "file":
      if (block.data !== undefined && block.mimeType.startsWith("audio/"))
        return [{ type: "audio", data: block.data, mimeType: block.mimeType }];
      return [toMediaBlock(block, block.name ?? "file")];
    case "artifact": {
      const { handle, name, mimeType, bytes } = block.ref;
      return [
        createTextBlock(block.preview),
        { type: "resource_link", uri: getUri(handle), name, mimeType, size: bytes },
      ];
    }
  }
}

function toMediaBlock({ data, url, mimeType }: ImageBlock | FileBlock, name: string): McpBlock {
  // A provider's file id is meaningless to other clients.
  if (data === undefined && url === undefined) return createTextBlock(`[${name}, ${mimeType}, not shown]`);
  if (data === undefined) return { type: "resource_link", uri: url, name, mimeType };
  const uri = `statewright://results/${encodeURIComponent(name)}`;
  return { type: "resource", resource: { uri, mimeType, blob: data } };
}

/** Creates a text block. */
export function createTextBlock(text: string): McpBlock {
  return { type: "text", text };
}

/** Creates an error result. */
export function createErrorResult(text: string): CallToolResult {
  return { content: [createTextBlock(text)], isError: true };
}

/** Converts an object of plain data to structured content. Returns undefined for other values and above `maxBytes`. */
export function toStructuredContent(value: unknown, maxBytes: number): Record<string, unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const text = JSON.stringify(value);
  // A UTF-16 code unit takes at most three bytes in UTF-8.
  if (text.length * 3 > maxBytes && Buffer.byteLength(text) > maxBytes) return undefined;
  return JSON.parse(text) as Record<string, unknown>;
}

interface JsonSchemaSource {
  readonly jsonSchema?: {
    readonly output: (options: {
      readonly target: "draft-2020-12";
      readonly libraryOptions: { readonly unrepresentable: "any" };
    }) => Readonly<Record<string, unknown>>;
  };
}

/**
 * Converts an output schema to JSON Schema. Returns undefined for a schema without JSON Schema support and for
 * non-object output.
 */
export function toOutputSchema(schema: Schema | undefined): ObjectSchema | undefined {
  const { jsonSchema } = (schema?.["~standard"] ?? {}) as JsonSchemaSource;
  const converted = jsonSchema?.output({ target: "draft-2020-12", libraryOptions: { unrepresentable: "any" } });
  if (converted === undefined || converted["type"] !== "object") return undefined;
  const { $schema: _dialect, ...rest } = converted;
  return JSON.parse(JSON.stringify(rest)) as ObjectSchema;
}

/** JSON Schema of an object. */
export interface ObjectSchema {
  readonly type: "object";
  readonly properties?: { [name: string]: object };
  readonly required?: string[];
  [word: string]: unknown;
}
