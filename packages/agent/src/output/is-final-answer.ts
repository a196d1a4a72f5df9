/**
 * Finds the answer in a model reply: its text, and the final call that carries structured output without native
 * schema support.
 */

import type { ModelDelta, ModelReply } from "@statewright/core";
import { finalCallName } from "@statewright/core/adapter";

/** Stream delta or reply block of the final call. */
type FinalPart<Part> = Part & { readonly type: "call"; readonly name: typeof finalCallName };

/** True for a part of the final call, which is the answer and no tool call. */
export function isFinalCall<Part extends ModelDelta | ModelReply["content"][number]>(
  part: Part,
): part is FinalPart<Part> {
  return part.type === "call" && part.name === finalCallName;
}

/** True when a reply is an answer: no tool calls, or a final call. */
export function isFinalAnswer({ content }: ModelReply): boolean {
  return content.some((block) => isFinalCall(block)) || !content.some(({ type }) => type === "call");
}

/** Returns the text of a reply, followed by structured output as JSON. */
export function getReplyText({ content }: ModelReply): string {
  const replyText = content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const outputs = content.flatMap((block) => (isFinalCall(block) ? [block.raw ?? JSON.stringify(block.args)] : []));
  return [replyText, ...outputs].filter((text) => text !== "").join("\n");
}
