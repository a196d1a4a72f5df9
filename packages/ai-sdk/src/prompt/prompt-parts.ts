/** Prompt parts common to all specifications, and conversion of parts common to user and assistant messages. */
import type { FileBlock, ImageBlock, Json, JsonObject } from "@statewright/core";
import type { Destination } from "../destination.ts";
import { describeMedia, inlineDataUrl, isUploadedTo, toMediaSource, toMediaText } from "../media.ts";
import { omitUndefined, type ProviderOptions, toProviderOptions } from "../provider-json.ts";

export type WithOptions = { providerOptions?: ProviderOptions };
export type TextPart = { type: "text"; text: string } & WithOptions;
export type ReasoningPart = { type: "reasoning"; text: string } & WithOptions;
export type FilePart<Data> = { type: "file"; mediaType: string; data: Data; filename?: string } & WithOptions;
export type CallPart = {
  type: "tool-call";
  toolCallId: string;
  toolName: string;
  input: Json;
  providerExecuted?: boolean;
} & WithOptions;
export type Output<Media> =
  | { type: "text" | "error-text"; value: string }
  | { type: "json" | "error-json"; value: Json }
  | { type: "content"; value: ({ type: "text"; text: string } | Media)[] };
export type ResultPart<Media> = {
  type: "tool-result";
  toolCallId: string;
  toolName: string;
  output: Output<Media>;
} & WithOptions;

/** Returns a text part, or no part for empty text. */
export function toTextParts(
  { text, provider }: { readonly text: string; readonly provider?: JsonObject | undefined },
  { rules }: Destination<unknown, unknown, unknown>,
): TextPart[] {
  const options = toProviderOptions(provider);
  if (text === "" && options.providerOptions === undefined) return [];
  if (rules.refusesBlankText === true && text.trim() === "") return [];
  return [{ type: "text", text, ...options }];
}

/**
 * Returns the reason why a file cannot be sent unchanged, or undefined. `accepted`: media types accepted as bytes;
 * default: all.
 */
export function getRefusalReason(
  block: ImageBlock | FileBlock,
  accepted: RegExp | undefined,
  { client, rules, dialect, takesUrl }: Destination<unknown, unknown, unknown>,
): string | undefined {
  if (block.uploaded !== undefined)
    return dialect.supportsUploads && isUploadedTo(client, rules.family, block)
      ? undefined
      : `the provider of the model does not have ${describeMedia(block)}, which was uploaded to ${Object.keys(block.uploaded).join(", ")}`;
  if (block.url !== undefined)
    return takesUrl(block.mimeType, block.url)
      ? undefined
      : `the model does not read ${describeMedia(block)} from a URL`;
  return accepted === undefined || accepted.test(block.mimeType)
    ? undefined
    : `the model does not read the file ${describeMedia(block)}`;
}

/** Returns a file part, or replacement text for a file that the model does not accept. */
export function toFilePart<Data>(
  original: ImageBlock | FileBlock,
  accepted: RegExp | undefined,
  to: Destination<Data, unknown, unknown>,
): FilePart<Data> | TextPart {
  const block = inlineDataUrl(original);
  const reason = getRefusalReason(block, accepted, to);
  if (reason !== undefined) {
    to.warn(`${reason}: it was sent as text`);
    return { type: "text", text: toMediaText(block, "refused"), ...toProviderOptions(block.provider) };
  }
  return {
    type: "file",
    mediaType: block.mimeType,
    data: to.dialect.toSource(toMediaSource(block)),
    ...omitUndefined({ filename: block.type === "file" ? block.name : undefined }),
    ...toProviderOptions(block.provider),
  };
}
