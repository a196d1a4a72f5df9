/**
 * Converts an assistant message to prompt parts. The model that produced the message gets every part back unchanged;
 * another model gets no reasoning, and provider-executed calls as a line of text.
 */
import type { AssistantMessage, FileBlock, JsonObject, ToolCallBlock } from "@statewright/core";
import { toProviderCallId, toProviderToolName } from "../call-names.ts";
import { getClientRules } from "../client-rules.ts";
import type { Destination } from "../destination.ts";
import { describeMedia, inlineDataUrl, toMediaText } from "../media.ts";
import { isObject, toProviderOptions } from "../provider-json.ts";
import { getReplyAuthor, listProviderParts, type ProviderPart } from "../reply-notes.ts";
import {
  type CallPart,
  type FilePart,
  type Output,
  type ReasoningPart,
  type ResultPart,
  type TextPart,
  toFilePart,
  toTextParts,
} from "./prompt-parts.ts";

export type AssistantPart<Data, Media, Other> =
  | TextPart
  | ReasoningPart
  | FilePart<Data>
  | CallPart
  | ResultPart<Media>
  | Other;

/**
 * Returns the blocks of a message, interleaved with its provider parts (e.g. provider-executed calls) in the original
 * order.
 */
export function toAssistantParts<Data, Media, Other>(
  message: AssistantMessage,
  to: Destination<Data, Media, Other>,
): AssistantPart<Data, Media, Other>[] {
  const provenance = getProvenance(message, to);
  const providerParts = listProviderParts(message.provider);
  const parts: AssistantPart<Data, Media, Other>[] = [];
  const appendProviderParts = (index: number): void => {
    for (const { at, part } of providerParts)
      if (index === message.content.length ? at >= index : at === index)
        parts.push(...toPromptParts(part, provenance, to));
  };
  for (const [index, block] of message.content.entries()) {
    appendProviderParts(index);
    parts.push(...toBlockParts(block, provenance, to));
  }
  appendProviderParts(message.content.length);
  return parts;
}

/**
 * Provenance of a message: the target model ("target"), an unknown model ("unknown"), or another model (undefined).
 * Messages of the first two are sent back complete.
 */
type Provenance = "target" | "unknown" | undefined;

function getProvenance(
  message: AssistantMessage,
  { client, model, rules }: Destination<unknown, unknown, unknown>,
): Provenance {
  const author = getReplyAuthor(message.provider);
  if (author === undefined) return "unknown";
  if (rules.reasoningIsModelBound === true && author.model !== undefined && author.model !== model) return undefined;
  if (author.client === client) return "target";
  const { family } = rules;
  return family !== undefined && family !== "openai" && getClientRules(author.client).family === family
    ? "target"
    : undefined;
}

function toBlockParts<Data, Media, Other>(
  block: AssistantMessage["content"][number],
  provenance: Provenance,
  to: Destination<Data, Media, Other>,
): AssistantPart<Data, Media, Other>[] {
  switch (block.type) {
    case "text":
      return toTextParts(
        provenance !== undefined ? block : { ...block, provider: omitItemIds(block.provider, to) },
        to,
      );
    case "reasoning":
      return provenance !== undefined
        ? [{ type: "reasoning", text: block.text, ...toProviderOptions(block.provider) }]
        : [];
    case "file":
      return [
        provenance === "target"
          ? toFilePart(block, undefined, { ...to, takesUrl: acceptUrl })
          : toAssistantFile(block, to),
      ];
    case "call":
      if (isApprovalRequest(block, provenance, to)) return [toApprovalCallPart(block, to)];
      return [
        toCallPart(provenance !== undefined ? block : { ...block, provider: omitItemIds(block.provider, to) }, to),
      ];
    default:
      return [];
  }
}

/** A file returns to the model that produced the file under any URL. */
function acceptUrl(): boolean {
  return true;
}

/**
 * Removes OpenAI item ids: the API rejects references to items of another model's reply without the reasoning items.
 */
function omitItemIds(
  provider: JsonObject | undefined,
  { rules }: Destination<unknown, unknown, unknown>,
): JsonObject | undefined {
  if (rules.reasoningIsModelBound !== true || provider === undefined) return provider;
  const { openai: _openai, azure: _azure, ...rest } = provider;
  return rest;
}

function toAssistantFile<Data>(
  original: FileBlock,
  to: Destination<Data, unknown, unknown>,
): FilePart<Data> | TextPart {
  const { assistantFiles } = to.rules;
  const block = inlineDataUrl(original);
  if (assistantFiles === undefined) return toFilePart(block, undefined, to);
  if (assistantFiles === "bytes" && block.data !== undefined) return toFilePart(block, undefined, to);
  to.warn(`the model does not read files in assistant messages, such as ${describeMedia(block)}: it was sent as text`);
  return { type: "text", text: toMediaText(block, "refused") };
}

/** Providers reject arguments that are not an object; the tool result reports the raw text of the model. */
function toCallPart(block: ToolCallBlock, { client }: Destination<unknown, unknown, unknown>): CallPart {
  return {
    type: "tool-call",
    toolCallId: toProviderCallId(client, block.id),
    toolName: toProviderToolName(block.name),
    input: block.raw === undefined && isObject(block.args) ? block.args : {},
    ...toProviderOptions(block.provider),
  };
}

/**
 * Returns pairs of call id and approval id for the provider approvals in a message; empty for messages of another
 * model.
 */
export function listApprovals(
  message: AssistantMessage,
  to: Destination<unknown, unknown, unknown>,
): readonly (readonly [call: string, approval: string])[] {
  const provenance = getProvenance(message, to);
  return message.content.flatMap((block) =>
    block.type === "call" && isApprovalRequest(block, provenance, to) ? [[block.id, block.approval] as const] : [],
  );
}

function isApprovalRequest(
  block: ToolCallBlock,
  provenance: Provenance,
  { dialect }: Destination<unknown, unknown, unknown>,
): block is ToolCallBlock & { readonly approval: string } {
  return block.approval !== undefined && provenance !== undefined && dialect.supportsApprovals;
}

/** Returns the part of a provider-executed call that needs approval. */
function toApprovalCallPart(
  { id, name, args, raw, provider }: ToolCallBlock,
  { client }: Destination<unknown, unknown, unknown>,
): CallPart {
  const input = raw === undefined && isObject(args) ? args : {};
  return {
    type: "tool-call",
    toolCallId: toProviderCallId(client, id),
    toolName: name,
    input,
    providerExecuted: true,
    ...toProviderOptions(provider),
  };
}

/** Converts a provider part for its own client. Sources and parts of unknown type are not sent. */
function toPromptParts<Data, Media, Other>(
  part: ProviderPart["part"],
  provenance: Provenance,
  { dialect }: Destination<Data, Media, Other>,
): AssistantPart<Data, Media, Other>[] {
  const { type, toolCallId, toolName, input = {} } = part;
  if (typeof toolCallId !== "string" || typeof toolName !== "string") {
    const nativePart = provenance !== undefined ? dialect.toNativePart(part) : undefined;
    return nativePart === undefined ? [] : [nativePart];
  }
  if (provenance === undefined)
    return type === "tool-call" ? [{ type: "text", text: formatProviderCall(toolName, input) }] : [];
  const options = toProviderOptions(part["providerMetadata"] as JsonObject | undefined);
  if (type === "tool-call") return [{ type, toolCallId, toolName, input, providerExecuted: true, ...options }];
  return type === "tool-result" ? [{ type, toolCallId, toolName, output: toProviderOutput(part), ...options }] : [];
}

const maxInputLength = 300;

function formatProviderCall(toolName: string, input: unknown): string {
  const text = JSON.stringify(input);
  return `[Ran ${toolName} at the provider: ${text.length > maxInputLength ? `${text.slice(0, maxInputLength)}…` : text}]`;
}

function toProviderOutput({ result = null, isError }: JsonObject): Output<never> {
  const failed = isError === true;
  if (typeof result === "string") return { type: failed ? "error-text" : "text", value: result };
  return { type: failed ? "error-json" : "json", value: result };
}
