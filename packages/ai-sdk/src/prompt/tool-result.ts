/** Converts tool messages to tool result parts of a prompt. */
import type { ContentBlock, FileBlock, ImageBlock, ToolMessage } from "@statewright/core";
import { getBlockText } from "@statewright/core/adapter";
import { toProviderCallId, toProviderToolName } from "../call-names.ts";
import type { Destination } from "../destination.ts";
import type { ApprovalOf } from "../dialect.ts";
import { describeMedia, inlineDataUrl, toMediaSource, toMediaText } from "../media.ts";
import { omitUndefined, toProviderOptions } from "../provider-json.ts";
import {
  type FilePart,
  getRefusalReason,
  type Output,
  type ResultPart,
  type TextPart,
  toFilePart,
} from "./prompt-parts.ts";

/**
 * Returns the result part of a tool message. For a client with text-only results, files are only named;
 * `toTrailingFileParts` returns the files.
 */
export function toResultPart<Data, Media>(
  message: ToolMessage,
  to: Destination<Data, Media, unknown>,
): ResultPart<Media> {
  return {
    type: "tool-result",
    toolCallId: toProviderCallId(to.client, message.callId),
    toolName: toProviderToolName(message.name),
    output: toOutput(message, to),
    ...toProviderOptions(message.provider),
  };
}

/** Returns the response to an approval request of a provider-executed call: approved, or denied with a reason. */
export function toApprovalPart<Data, Media>(
  { isError, content }: ToolMessage,
  approvalId: string | undefined,
  { dialect }: Destination<Data, Media, unknown>,
): ApprovalOf<Media> | undefined {
  if (approvalId === undefined) return undefined;
  const reason = content.map((block) => getBlockText(block) ?? "").join("\n");
  const response = { type: "tool-approval-response" as const, approvalId, approved: !isError };
  return dialect.toApproval(isError && reason !== "" ? { ...response, reason } : response);
}

/**
 * For clients with text-only tool results: the files of a tool message after a heading line, for a following user
 * message.
 */
export function toTrailingFileParts<Data>(
  message: ToolMessage,
  to: Destination<Data, unknown, unknown>,
): (TextPart | FilePart<Data>)[] {
  if (to.rules.resultMedia !== "none" || message.isError) return [];
  const files = message.content.flatMap((block) => (isMedia(block) ? [toFilePart(block, to.rules.media, to)] : []));
  return files.length === 0 ? [] : [{ type: "text", text: `Files returned by ${message.name}:` }, ...files];
}

function isMedia(block: ContentBlock): block is ImageBlock | FileBlock {
  return block.type === "image" || block.type === "file";
}

function toOutput<Data, Media>(
  { content, isError }: ToolMessage,
  to: Destination<Data, Media, unknown>,
): Output<Media> {
  const [first] = content;
  if (content.length === 1 && first !== undefined) {
    if (first.type === "json") return { type: isError ? "error-json" : "json", value: first.value };
    if (!isMedia(first)) return { type: isError ? "error-text" : "text", value: getBlockText(first) ?? "" };
  }
  const isTextOnly = to.rules.resultMedia === "none";
  // No specification allows files in an error result: files of a failed tool are only named.
  if (!isError && !isTextOnly && content.some(isMedia))
    return { type: "content", value: content.map((block) => toContentPart(block, to)) };
  const toPlaceholder = !isError && isTextOnly ? toTrailingPlaceholder : toUnseenPlaceholder;
  const texts = content.map((block) => (isMedia(block) ? toPlaceholder(block) : (getBlockText(block) ?? "")));
  return { type: isError ? "error-text" : "text", value: texts.join("\n") };
}

function toContentPart<Data, Media>(
  original: ContentBlock,
  to: Destination<Data, Media, unknown>,
): { type: "text"; text: string } | Media {
  if (!isMedia(original)) return { type: "text", text: getBlockText(original) ?? "" };
  const block = inlineDataUrl(original);
  const { resultMedia } = to.rules;
  const reason = getRefusalReason(block, resultMedia === "none" ? undefined : resultMedia, to);
  const media =
    reason === undefined
      ? to.dialect.toMedia({
          ...toMediaSource(block),
          mediaType: block.mimeType,
          ...omitUndefined({ filename: block.type === "file" ? block.name : undefined }),
        })
      : undefined;
  if (media !== undefined) return media;
  to.warn(`${reason ?? `a tool result cannot hold ${describeMedia(block)} by URL`}: it was sent as text`);
  return { type: "text", text: toMediaText(block, "refused") };
}

/** Returns the text in place of a file that follows in a user message. */
function toTrailingPlaceholder(block: ImageBlock | FileBlock): string {
  return `[${describeMedia(block)}, shown below]`;
}

/** Returns the text in place of a file that is not sent. */
function toUnseenPlaceholder(block: ImageBlock | FileBlock): string {
  return toMediaText(block, "unseen");
}
