/** Messages of the user, from the wire. */
import type { UserMessage } from "@statewright/core";
import type { WireUserBlock, WireUserMessage } from "./schemas/messages.ts";

type UserBlock = UserMessage["content"][number];

/** Returns a message of the user; a text becomes a single block. `id` is the id of a message that has none. */
export function toUserMessage({ id: given, content }: WireUserMessage, id: string): UserMessage {
  const blocks: readonly WireUserBlock[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return { role: "user", id: given ?? id, content: blocks.map(toUserBlock) };
}

function toUserBlock(block: WireUserBlock): UserBlock {
  if (block.type === "text") return { type: "text", text: block.text };
  const { type, mimeType, name } = block;
  const source = toSource(block);
  if (type === "image") return { type, mimeType, ...source };
  return { type, mimeType, ...source, ...(name === undefined ? {} : { name }) };
}

function toSource({ data, url, uploaded }: Exclude<WireUserBlock, { readonly type: "text" }>) {
  if (data !== undefined) return { data };
  if (url !== undefined) return { url };
  return { uploaded: uploaded ?? {} };
}
