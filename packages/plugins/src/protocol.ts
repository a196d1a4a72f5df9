/** What a plugin and its host say to each other: one JSON object a line. */
import type { ContentBlock, Json, JsonObject } from "@statewright/core";

/** What a plugin may do beyond the first protocol; it says so when it describes itself. */
export type PluginCapability = "call_id" | "update" | "cancel" | "shutdown" | "concurrent";

/** One tool as a plugin describes it. */
export interface PluginToolDefinition {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonObject;
  readonly label?: string;
  readonly effect?: "pure" | "idempotent" | "once";
}

/** What a plugin says of itself. */
export interface PluginDescription {
  readonly tools: readonly PluginToolDefinition[];
  /** Whether it sent a list of tools: its calls then say which. */
  readonly isList: boolean;
  readonly capabilities: ReadonlySet<PluginCapability>;
}

/** The answer to a call. */
export interface PluginReply {
  readonly kind: "reply";
  readonly callId: string | undefined;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  readonly details: Json | undefined;
  readonly value: Json | undefined;
}

/** What a plugin says during a call. */
export type PluginNews =
  | {
      readonly kind: "update";
      readonly callId: string;
      readonly content: readonly ContentBlock[];
      readonly details: Json | undefined;
    }
  | { readonly kind: "progress"; readonly callId: string; readonly text: string };

/** A line, read: `broken` begins as an object and is not whole, `noise` is everything else that is nothing of the protocol. */
export type Line = PluginReply | PluginNews | { readonly kind: "broken" } | { readonly kind: "noise" };

/** Read a line that came in answer to calls. */
export function readLine(line: string): Line {
  const text = line.trim();
  if (!text.startsWith("{")) return { kind: "noise" };
  const message = parsed(text);
  if (!isObject(message)) return { kind: "broken" };
  const callId = typeof message["call_id"] === "string" ? message["call_id"] : undefined;
  const { type } = message;
  if (type === "progress" && callId !== undefined && typeof message["text"] === "string")
    return { kind: "progress", callId, text: message["text"] };
  const content = blocksOf(message["content"]);
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

/** Read the line in which a plugin describes itself; a text says what is wrong with it, nothing that it is another line. */
export function readDescription(line: string): PluginDescription | string | undefined {
  const text = line.trim();
  if (!text.startsWith("{")) return undefined;
  const message = parsed(text);
  if (!isObject(message)) return "its description is not one whole JSON object on one line";
  const isList = Array.isArray(message["tools"]);
  const tools: PluginToolDefinition[] = [];
  for (const given of isList ? (message["tools"] as readonly unknown[]) : [message]) {
    const tool = toolOf(given);
    if (typeof tool === "string") return tool;
    tools.push(tool);
  }
  if (tools.length === 0) return "it describes no tool";
  return {
    tools,
    isList,
    capabilities: message["protocol"] === 2 ? capabilitiesOf(message["capabilities"]) : new Set(),
  };
}

function toolOf(given: unknown): PluginToolDefinition | string {
  if (!isObject(given)) return "a tool that it describes is no object";
  const { name, description, parameters, label, effect } = given;
  if (typeof name !== "string" || name === "") return "a tool that it describes has no name";
  if (typeof description !== "string") return `the tool "${name}" that it describes has no description`;
  if (!isObject(parameters))
    return `the tool "${name}" that it describes has no parameters: a JSON Schema of an object`;
  return {
    name,
    description,
    parameters: parameters as JsonObject,
    ...(typeof label === "string" ? { label } : {}),
    ...(effect === "pure" || effect === "idempotent" || effect === "once" ? { effect } : {}),
  };
}

const known: readonly PluginCapability[] = ["call_id", "update", "cancel", "shutdown", "concurrent"];

function capabilitiesOf(given: unknown): ReadonlySet<PluginCapability> {
  const said = new Set(Array.isArray(given) ? known.filter((capability) => given.includes(capability)) : []);
  // Answers that come in another order, and what is said during a call, need the id of the call.
  if (said.has("concurrent") || said.has("update") || said.has("cancel")) said.add("call_id");
  return said;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Blocks as ours: text blocks that stand together are one, images keep their place, and what is neither is text as it came:
 * nothing that a plugin says is lost. Undefined for what is no list.
 */
function blocksOf(content: unknown): readonly ContentBlock[] | undefined {
  if (!Array.isArray(content)) return undefined;
  const blocks: ContentBlock[] = [];
  for (const given of content) {
    const block = blockOf(given);
    const last = blocks.at(-1);
    if (block.type === "text" && last?.type === "text")
      blocks[blocks.length - 1] = { type: "text", text: last.text + block.text };
    else blocks.push(block);
  }
  return blocks;
}

function blockOf(given: unknown): ContentBlock {
  if (typeof given === "string") return { type: "text", text: given };
  if (!isObject(given)) return asItCame(given);
  if (given["type"] === "text" && typeof given["text"] === "string") return { type: "text", text: given["text"] };
  const mimeType = given["mimeType"] ?? given["mime_type"];
  if (given["type"] === "image" && typeof given["data"] === "string" && typeof mimeType === "string")
    return { type: "image", data: given["data"], mimeType };
  return asItCame(given);
}

function asItCame(given: unknown): ContentBlock {
  return { type: "text", text: JSON.stringify(given) };
}

/** A JSON object: what came from JSON.parse has no other kind of object but lists. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
