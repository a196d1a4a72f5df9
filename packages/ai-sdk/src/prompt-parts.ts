/** The parts of a prompt, as all specifications spell them, and those that stand in messages of users and assistants alike. */
import type { FileBlock, ImageBlock, Json, JsonObject } from "@statewright/core";
import type { Destination } from "./destination.ts";
import { isKeptBy, mediaText, sourceOf, titleOf, withBytes } from "./media.ts";
import { type ProviderOptions, present, sentBack } from "./provider-json.ts";

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

/** A text, or nothing where it says nothing. */
export function textPart(
  { text, provider }: { readonly text: string; readonly provider?: JsonObject | undefined },
  { rules }: Destination<unknown, unknown, unknown>,
): TextPart[] {
  const options = sentBack(provider);
  if (text === "" && options.providerOptions === undefined) return [];
  if (rules.refusesBlankText === true && text.trim() === "") return [];
  return [{ type: "text", text, ...options }];
}

/** Why a file does not go as it is, or nothing. `taken` are the kinds of files that the client takes as bytes; all when it is left out. */
export function refusal(
  block: ImageBlock | FileBlock,
  taken: RegExp | undefined,
  { client, rules, dialect, takesUrl }: Destination<unknown, unknown, unknown>,
): string | undefined {
  if (block.uploaded !== undefined)
    return dialect.takesUploads && isKeptBy(client, rules.family, block)
      ? undefined
      : `the provider of the model does not have ${titleOf(block)}, which was uploaded to ${Object.keys(block.uploaded).join(", ")}`;
  if (block.url !== undefined)
    return takesUrl(block.mimeType, block.url)
      ? undefined
      : `the model does not read ${titleOf(block)} from its address`;
  return taken === undefined || taken.test(block.mimeType)
    ? undefined
    : `the model does not read files that are ${titleOf(block)}`;
}

/** A file as it is, or text in its place. */
export function filePart<Data>(
  given: ImageBlock | FileBlock,
  taken: RegExp | undefined,
  to: Destination<Data, unknown, unknown>,
): FilePart<Data> | TextPart {
  const block = withBytes(given);
  const why = refusal(block, taken, to);
  if (why !== undefined) {
    to.warn(`${why}: it was sent as text`);
    return { type: "text", text: mediaText(block, "refused"), ...sentBack(block.provider) };
  }
  return {
    type: "file",
    mediaType: block.mimeType,
    data: to.dialect.source(sourceOf(block)),
    ...present({ filename: block.type === "file" ? block.name : undefined }),
    ...sentBack(block.provider),
  };
}
