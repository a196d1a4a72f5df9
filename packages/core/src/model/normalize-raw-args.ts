/** Raw arguments of tool calls as text. */
import type { AssistantMessage, ToolCallBlock } from "./message.ts";

/**
 * Returns the content with the raw arguments of each call as text. Adapters written by hand may give another value,
 * and null for calls without raw arguments. Returns the same list when nothing changes.
 */
export function normalizeRawArgs(content: AssistantMessage["content"]): AssistantMessage["content"] {
  if (!content.some((block) => block.type === "call" && "raw" in block && typeof block.raw !== "string"))
    return content;
  return content.map((block) => {
    if (block.type !== "call" || typeof block.raw === "string") return block;
    const { raw, ...call }: ToolCallBlock & { readonly raw?: unknown } = block;
    return raw === undefined || raw === null ? call : { ...call, raw: JSON.stringify(raw) ?? typeof raw };
  });
}
