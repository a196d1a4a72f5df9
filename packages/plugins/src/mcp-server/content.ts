/** Results in the words of MCP: text, images, files, links to what was kept, and structured content. */
import type { CallToolResult, ContentBlock as McpBlock } from "@modelcontextprotocol/server";
import type { ContentBlock, FileBlock, ImageBlock, Schema } from "@statewright/core";

/** The address of an artifact that a call has kept, for `resources/read`. */
export function artifactUri(tool: string, thread: string, handle: string): string {
  return `${artifactScheme}${tool}/${thread}/${handle}`;
}

/** How addresses of artifacts begin. */
export const artifactScheme = "statewright://artifacts/";

/** The template of such addresses, as clients are shown it. */
export const artifactTemplate: string = `${artifactScheme}{tool}/{thread}/{handle}`;

/** One block as MCP has it; of an artifact what the model sees, and where the whole of it is. */
export function mcpBlocks(block: ContentBlock, addressOf: (handle: string) => string): readonly McpBlock[] {
  switch (block.type) {
    case "text":
      return [textBlock(block.text)];
    case "json":
      return [textBlock(JSON.stringify(block.value))];
    case "image":
      if (block.data !== undefined && block.mimeType !== "image/*")
        return [{ type: "image", data: block.data, mimeType: block.mimeType }];
      return [media(block, "image")];
    case "file":
      if (block.data !== undefined && block.mimeType.startsWith("audio/"))
        return [{ type: "audio", data: block.data, mimeType: block.mimeType }];
      return [media(block, block.name ?? "file")];
    case "artifact": {
      const { handle, name, mimeType, bytes } = block.ref;
      return [textBlock(block.preview), { type: "resource_link", uri: addressOf(handle), name, mimeType, size: bytes }];
    }
  }
}

function media({ data, url, mimeType }: ImageBlock | FileBlock, name: string): McpBlock {
  // The id under which one provider keeps it says nothing to anybody else.
  if (data === undefined && url === undefined) return textBlock(`[${name}, ${mimeType}, not shown]`);
  if (data === undefined) return { type: "resource_link", uri: url, name, mimeType };
  const uri = `statewright://results/${encodeURIComponent(name)}`;
  return { type: "resource", resource: { uri, mimeType, blob: data } };
}

/** A text as a block. */
export function textBlock(text: string): McpBlock {
  return { type: "text", text };
}

/** A result that says why there is none. */
export function failure(text: string): CallToolResult {
  return { content: [textBlock(text)], isError: true };
}

/** A value as structured content, which is an object of plain data; nothing where it is none, or larger than allowed. */
export function structured(value: unknown, mostBytes: number): Record<string, unknown> | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const text = JSON.stringify(value);
  // A character has three bytes at most.
  if (text.length * 3 > mostBytes && Buffer.byteLength(text) > mostBytes) return undefined;
  return JSON.parse(text) as Record<string, unknown>;
}

interface Describing {
  readonly jsonSchema?: {
    readonly output: (options: {
      readonly target: "draft-2020-12";
      readonly libraryOptions: { readonly unrepresentable: "any" };
    }) => Readonly<Record<string, unknown>>;
  };
}

/** What a schema gives, as JSON Schema; nothing for one that cannot say it, or that gives no object. */
export function outputSchemaOf(schema: Schema | undefined): ObjectSchema | undefined {
  const { jsonSchema } = (schema?.["~standard"] ?? {}) as Describing;
  const said = jsonSchema?.output({ target: "draft-2020-12", libraryOptions: { unrepresentable: "any" } });
  if (said === undefined || said["type"] !== "object") return undefined;
  const { $schema: _dialect, ...rest } = said;
  return JSON.parse(JSON.stringify(rest)) as ObjectSchema;
}

/** A JSON Schema of an object. */
export interface ObjectSchema {
  readonly type: "object";
  readonly properties?: { [name: string]: object };
  readonly required?: string[];
  [word: string]: unknown;
}
