/** Messages of clients, in the format of LangChain, as messages of a thread. */
import type { AssistantMessage, FileBlock, ImageBlock, Json, Message, TextBlock, ToolMessage } from "@statewright/core";
import { createInputProblem } from "./create-problem.ts";
import { isRecord } from "./is-record.ts";
import type { WireObject } from "./to-wire-message.ts";

/** Message of a client: role, id if the client gave one, and the whole object. */
export interface GivenMessage {
  readonly role: "system" | "user" | "assistant" | "tool" | "remove";
  readonly id: string | undefined;
  readonly fields: WireObject;
}

const roles: Readonly<Record<string, GivenMessage["role"]>> = {
  human: "user",
  user: "user",
  ai: "assistant",
  assistant: "assistant",
  tool: "tool",
  system: "system",
  developer: "system",
  remove: "remove",
};

/**
 * Reads the messages of an input or an update: a text, a message, or a list of messages. A message is an object with
 * `type` or `role`, or a pair of role and content. Throws a problem with the place of the first invalid message.
 */
export function parseGivenMessages(value: unknown, pointer: string): readonly GivenMessage[] {
  if (typeof value === "string") return [createTextMessage(value)];
  if (!Array.isArray(value)) return [parseGivenMessage(value, pointer)];
  return value.map((item, index) => parseGivenMessage(item, `${pointer}/${index}`));
}

function createTextMessage(text: string): GivenMessage {
  return { role: "user", id: undefined, fields: { content: text } };
}

function parseGivenMessage(value: unknown, pointer: string): GivenMessage {
  if (typeof value === "string") return createTextMessage(value);
  if (Array.isArray(value) && value.length === 2)
    return parseGivenMessage({ type: value[0], content: value[1] }, pointer);
  if (!isRecord(value)) throw createInputProblem(pointer, "expected a message with a type and content");
  const fields = unwrapConstructor(value);
  const name = fields["type"] ?? fields["role"];
  const role = typeof name === "string" && Object.hasOwn(roles, name) ? roles[name] : undefined;
  if (role === undefined)
    throw createInputProblem(`${pointer}/type`, "expected human, ai, tool, system or remove as type of a message");
  const id = fields["id"];
  return { role, id: typeof id === "string" && id !== "" ? id : undefined, fields };
}

/** Serialized instances of message classes hold the message in `kwargs`. */
function unwrapConstructor(value: WireObject): WireObject {
  const { kwargs, id } = value;
  if (value["type"] !== "constructor" || !isRecord(kwargs) || !Array.isArray(id)) return value;
  const name = String(id.at(-1)).replace(/Message(Chunk)?$/, "");
  return { ...kwargs, type: name.toLowerCase() };
}

/** Converts a message of a user. Throws a problem for content that cannot be saved. */
export function toUserMessage(id: string, { fields }: GivenMessage, pointer: string): Message {
  return { role: "user", id, content: parseUserContent(fields["content"], `${pointer}/content`) };
}

/** Converts a message of any role but `remove`, for an update of the state by a caller with the right to write. */
export function toAnyMessage(id: string, given: GivenMessage, pointer: string): Message {
  const { role, fields } = given;
  switch (role) {
    case "system":
      return { role, id, content: parseText(fields["content"], `${pointer}/content`) };
    case "assistant":
      return toAssistantMessage(id, fields, pointer);
    case "tool":
      return toToolMessage(id, fields, pointer);
    default:
      return toUserMessage(id, given, pointer);
  }
}

function toAssistantMessage(id: string, fields: WireObject, pointer: string): AssistantMessage {
  const content = parseAssistantContent(fields["content"] ?? "", `${pointer}/content`);
  const given = fields["tool_calls"];
  const calls = Array.isArray(given)
    ? given.map((call, index) => parseCall(call, `${pointer}/tool_calls/${index}`))
    : [];
  return { role: "assistant", id, content: [...content, ...calls], finish: calls.length === 0 ? "stop" : "calls" };
}

function parseCall(call: unknown, pointer: string): AssistantMessage["content"][number] {
  if (!isRecord(call) || typeof call["id"] !== "string" || typeof call["name"] !== "string")
    throw createInputProblem(pointer, "expected a tool call with id, name and args");
  return { type: "call", id: call["id"], name: call["name"], args: toJson(call["args"] ?? {}) };
}

function toToolMessage(id: string, fields: WireObject, pointer: string): ToolMessage {
  const callId = fields["tool_call_id"];
  if (typeof callId !== "string") throw createInputProblem(`${pointer}/tool_call_id`, "expected the id of a tool call");
  const name = typeof fields["name"] === "string" ? fields["name"] : "tool";
  const content = parseUserContent(fields["content"], `${pointer}/content`);
  return { role: "tool", id, callId, name, content, isError: fields["status"] === "error" };
}

function parseAssistantContent(content: unknown, pointer: string): AssistantMessage["content"] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (!Array.isArray(content)) throw createInputProblem(pointer, "expected text or a list of content blocks");
  return content.flatMap((block, index): AssistantMessage["content"] => {
    if (isRecord(block) && block["type"] === "reasoning" && typeof block["reasoning"] === "string")
      return [{ type: "reasoning", text: block["reasoning"] }];
    const parsed = parseBlock(block, `${pointer}/${index}`);
    return parsed === undefined || parsed.type === "image" ? [] : [parsed];
  });
}

function parseText(content: unknown, pointer: string): string {
  const blocks = parseUserContent(content, pointer);
  return blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
}

type UserBlock = TextBlock | ImageBlock | FileBlock;

function parseUserContent(content: unknown, pointer: string): readonly UserBlock[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) throw createInputProblem(pointer, "expected text or a list of content blocks");
  return content.map((block, index) => {
    const parsed = parseBlock(block, `${pointer}/${index}`);
    if (parsed === undefined)
      throw createInputProblem(`${pointer}/${index}`, "expected a block of the type text, image, image_url or file");
    return parsed;
  });
}

/** Returns a block of text, an image or a file; undefined for a block of another type. */
function parseBlock(block: unknown, pointer: string): UserBlock | undefined {
  if (typeof block === "string") return { type: "text", text: block };
  if (!isRecord(block)) return undefined;
  switch (block["type"]) {
    case "text":
    case "text-plain":
      return typeof block["text"] === "string" ? { type: "text", text: block["text"] } : undefined;
    case "image_url":
      return parseImageUrl(block["image_url"], pointer);
    case "image":
    case "file":
    case "audio":
    case "video":
      return parseMedia(block, pointer);
    default:
      return undefined;
  }
}

function parseImageUrl(given: unknown, pointer: string): ImageBlock {
  const url = isRecord(given) ? given["url"] : given;
  if (typeof url !== "string") throw createInputProblem(`${pointer}/image_url`, "expected an object with a url");
  return { type: "image", ...parseSource({ url, mimeType: "image/*" }, `${pointer}/image_url/url`) };
}

function parseMedia(block: WireObject, pointer: string): ImageBlock | FileBlock {
  const mimeType = block["mimeType"] ?? block["mime_type"];
  const isImage = block["type"] === "image" || (typeof mimeType === "string" && mimeType.startsWith("image/"));
  const source = parseSource({ ...block, mimeType: mimeType ?? (isImage ? "image/*" : undefined) }, pointer);
  if (isImage) return { type: "image", ...source };
  const metadata = isRecord(block["metadata"]) ? block["metadata"] : {};
  const name = metadata["filename"] ?? metadata["name"];
  return { type: "file", ...source, ...(typeof name === "string" ? { name } : {}) };
}

type Source = { readonly mimeType: string } & ({ readonly data: string } | { readonly url: string });

/** Reads base64 bytes, a data URL or a URL. The server fetches no URL: the provider of the model does. */
function parseSource(block: WireObject, pointer: string): Source {
  const { mimeType, url } = block;
  const data = block["data"] ?? block["base64"];
  const inline = typeof url === "string" ? /^data:([\w.+-]+\/[\w.+*-]+);base64,(.+)$/s.exec(url) : null;
  if (inline !== null) return { mimeType: inline[1] ?? "", data: inline[2] ?? "" };
  if (typeof mimeType !== "string")
    throw createInputProblem(`${pointer}/mimeType`, "expected the MIME type of the file");
  if (typeof data === "string") return { mimeType, data };
  if (typeof url === "string" && /^https?:/.test(url) && URL.canParse(url)) return { mimeType, url };
  throw createInputProblem(pointer, "expected a file as base64 data, or as a url with http, https or data");
}

/** Values of a parsed body are JSON. */
function toJson(value: unknown): Json {
  return value as Json;
}
