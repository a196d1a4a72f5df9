/** The answer to a call, as a part of a prompt. */
import { type ContentBlock, type FileBlock, type ImageBlock, type ToolMessage, wordsOf } from "@statewright/core";
import { sentId, sentName } from "./call-names.ts";
import type { Destination } from "./destination.ts";
import type { ApprovalOf } from "./dialect.ts";
import { mediaText, sourceOf, titleOf, withBytes } from "./media.ts";
import { type FilePart, filePart, type Output, type ResultPart, refusal, type TextPart } from "./prompt-parts.ts";
import { present, sentBack } from "./provider-json.ts";

/** The answer to a call. Where answers are text only, its files are named; `shownBelow` has them. */
export function resultPart<Data, Media>(
  message: ToolMessage,
  to: Destination<Data, Media, unknown>,
): ResultPart<Media> {
  return {
    type: "tool-result",
    toolCallId: sentId(to.client, message.callId),
    toolName: sentName(message.name),
    output: outputOf(message, to),
    ...sentBack(message.provider),
  };
}

/** The answer to a provider that asked before it runs a call: yes, or no and why. */
export function approvalPart<Data, Media>(
  { isError, content }: ToolMessage,
  approvalId: string | undefined,
  { dialect }: Destination<Data, Media, unknown>,
): ApprovalOf<Media> | undefined {
  if (approvalId === undefined) return undefined;
  const reason = content.map((block) => wordsOf(block) ?? "").join("\n");
  const said = { type: "tool-approval-response" as const, approvalId, approved: !isError };
  return dialect.approval(isError && reason !== "" ? { ...said, reason } : said);
}

/** Where answers are text only: the files of one, after a line that says whose they are, for a message of the user behind it. */
export function shownBelow<Data>(
  message: ToolMessage,
  to: Destination<Data, unknown, unknown>,
): (TextPart | FilePart<Data>)[] {
  if (to.rules.answerMedia !== "none" || message.isError) return [];
  const files = message.content.flatMap((block) => (isMedia(block) ? [filePart(block, to.rules.media, to)] : []));
  return files.length === 0 ? [] : [{ type: "text", text: `What ${message.name} has shown:` }, ...files];
}

function isMedia(block: ContentBlock): block is ImageBlock | FileBlock {
  return block.type === "image" || block.type === "file";
}

function outputOf<Data, Media>(
  { content, isError }: ToolMessage,
  to: Destination<Data, Media, unknown>,
): Output<Media> {
  const [first] = content;
  if (first?.type === "json" && content.length === 1) {
    return { type: isError ? "error-json" : "json", value: first.value };
  }
  const textOnly = to.rules.answerMedia === "none";
  // No specification has an error with files in it, so that those of a failed tool are only named.
  if (!isError && !textOnly && content.some(isMedia))
    return { type: "content", value: content.map((block) => contentPart(block, to)) };
  const texts = content.map((block) => (isMedia(block) ? named(block, !isError && textOnly) : (wordsOf(block) ?? "")));
  return { type: isError ? "error-text" : "text", value: texts.join("\n") };
}

function contentPart<Data, Media>(
  given: ContentBlock,
  to: Destination<Data, Media, unknown>,
): { type: "text"; text: string } | Media {
  if (!isMedia(given)) return { type: "text", text: wordsOf(given) ?? "" };
  const block = withBytes(given);
  const { answerMedia } = to.rules;
  const why = refusal(block, answerMedia === "none" ? undefined : answerMedia, to);
  const media =
    why === undefined
      ? to.dialect.media({
          ...sourceOf(block),
          mediaType: block.mimeType,
          ...present({ filename: block.type === "file" ? block.name : undefined }),
        })
      : undefined;
  if (media !== undefined) return media;
  to.warn(`${why ?? `the answer of a tool cannot hold ${titleOf(block)} by its address`}: it was sent as text`);
  return { type: "text", text: mediaText(block, "refused") };
}

function named(block: ImageBlock | FileBlock, below: boolean): string {
  return below ? `[${titleOf(block)}, shown below]` : mediaText(block, "unseen");
}
