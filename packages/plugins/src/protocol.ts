/** Plugin protocol: one JSON object per line. */
import type { ContentBlock, Json, JsonObject } from "@statewright/core";
import { isJsonObject, isNestedDeeper } from "@statewright/json-schema";

/** Maximum nesting levels of a line: later copies and serializations of the values are recursive. */
const maxLineDepth = 500;

/** Maximum number of described tools. */
const maxTools = 2_000;

/** Capability beyond protocol version 1, declared in the description. */
export type PluginCapability = "call_id" | "update" | "cancel" | "shutdown" | "concurrent";

/** Tool in a description. */
export interface PluginToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly label?: string;
  readonly effect?: "pure" | "idempotent" | "once";
}

/** Description of a plugin. */
export interface PluginDescription {
  readonly tools: readonly PluginToolDefinition[];
  /** True if the description contains a list of tools: calls then name the tool. */
  readonly isList: boolean;
  readonly capabilities: ReadonlySet<PluginCapability>;
}

/** Reply to a call. */
export interface PluginReply {
  readonly kind: "reply";
  readonly callId: string | undefined;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  readonly details: Json | undefined;
  readonly value: Json | undefined;
}

/** Notification of a plugin during a call. */
export type PluginNotification =
  | {
      readonly kind: "update";
      readonly callId: string;
      readonly content: readonly ContentBlock[];
      readonly details: Json | undefined;
    }
  | { readonly kind: "progress"; readonly callId: string; readonly text: string };

/** Parsed line: `broken` is a line that is no usable JSON object, `noise` any line outside the protocol. */
export type ProtocolLine =
  | PluginReply
  | PluginNotification
  | { readonly kind: "broken"; readonly problem: string }
  | { readonly kind: "noise" };

/** Parses a line after the description. */
export function parseLine(line: string): ProtocolLine {
  const text = line.trim();
  if (!text.startsWith("{")) return { kind: "noise" };
  const message = parseJson(text);
  if (!isJsonObject(message)) return { kind: "broken", problem: "incomplete JSON object" };
  if (isNestedDeeper(message, maxLineDepth))
    return { kind: "broken", problem: `a line is nested deeper than ${maxLineDepth} levels` };
  const callId = typeof message["call_id"] === "string" ? message["call_id"] : undefined;
  const { type } = message;
  if (type === "progress" && callId !== undefined && typeof message["text"] === "string")
    return { kind: "progress", callId, text: message["text"] };
  const content = parseBlocks(message["content"]);
  if (content === undefined) return { kind: "noise" };
  const details = message["details"] as Json | undefined;
  if (type === "update") return callId === undefined ? { kind: "noise" } : { kind: "update", callId, content, details };
  return {
    kind: "reply",
    callId,
    content,
    isError: message["error"] === true,
    details,
    value: message["value"] as Json | undefined,
  };
}

/**
 * Parses the description. Returns the problem as a string for an invalid description, and undefined for any other
 * line.
 */
export function parseDescription(line: string): PluginDescription | string | undefined {
  const text = line.trim();
  if (!text.startsWith("{")) return undefined;
  const message = parseJson(text);
  if (!isJsonObject(message)) return "its description is not a complete JSON object on one line";
  if (isNestedDeeper(message, maxLineDepth)) return `its description is nested deeper than ${maxLineDepth} levels`;
  const isList = Array.isArray(message["tools"]);
  const entries = isList ? (message["tools"] as readonly unknown[]) : [message];
  if (entries.length > maxTools) return `its description has ${entries.length} tools, the maximum is ${maxTools}`;
  const tools: PluginToolDefinition[] = [];
  for (const entry of entries) {
    const tool = parseTool(entry);
    if (typeof tool === "string") return tool;
    tools.push(tool);
  }
  if (tools.length === 0) return "its description has no tools";
  return {
    tools,
    isList,
    capabilities: message["protocol"] === 2 ? parseCapabilities(message["capabilities"]) : new Set(),
  };
}

function parseTool(value: unknown): PluginToolDefinition | string {
  if (!isJsonObject(value)) return "a described tool is not an object";
  const { name, description, parameters, label, effect } = value;
  if (typeof name !== "string" || name === "") return "a described tool has no name";
  if (typeof description !== "string") return `the described tool "${name}" has no description`;
  if (!isJsonObject(parameters))
    return `the described tool "${name}" has no parameters: expected a JSON Schema of an object`;
  return {
    name,
    description,
    parameters: parameters as JsonObject,
    ...(typeof label === "string" ? { label } : {}),
    ...(effect === "pure" || effect === "idempotent" || effect === "once" ? { effect } : {}),
  };
}

const knownCapabilities: readonly PluginCapability[] = ["call_id", "update", "cancel", "shutdown", "concurrent"];

function parseCapabilities(value: unknown): ReadonlySet<PluginCapability> {
  const declared = new Set(
    Array.isArray(value) ? knownCapabilities.filter((capability) => value.includes(capability)) : [],
  );
  // Replies in another order and notifications need the call id.
  if (declared.has("concurrent") || declared.has("update") || declared.has("cancel")) declared.add("call_id");
  return declared;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Parses content blocks. Adjacent text blocks are joined, images keep their position, and other values become JSON
 * text, so that no content is lost. Undefined if the content is not a list.
 */
function parseBlocks(content: unknown): readonly ContentBlock[] | undefined {
  if (!Array.isArray(content)) return undefined;
  const blocks: ContentBlock[] = [];
  for (const entry of content) {
    const block = parseBlock(entry);
    const last = blocks.at(-1);
    if (block.type === "text" && last?.type === "text")
      blocks[blocks.length - 1] = { type: "text", text: last.text + block.text };
    else blocks.push(block);
  }
  return blocks;
}

function parseBlock(value: unknown): ContentBlock {
  if (typeof value === "string") return { type: "text", text: value };
  if (!isJsonObject(value)) return toJsonText(value);
  if (value["type"] === "text" && typeof value["text"] === "string") return { type: "text", text: value["text"] };
  const mimeType = value["mimeType"] ?? value["mime_type"];
  if (value["type"] === "image" && typeof value["data"] === "string" && typeof mimeType === "string")
    return { type: "image", data: value["data"], mimeType };
  return toJsonText(value);
}

function toJsonText(value: unknown): ContentBlock {
  return { type: "text", text: JSON.stringify(value) };
}
