/**
 * What an assistant said, as the parts of a prompt. To the model that said it everything goes back as it came; to another
 * one goes what it can read: no thoughts, and calls that a provider ran itself as a line of text.
 */
import type { AssistantMessage, FileBlock, JsonObject, ToolCallBlock } from "@statewright/core";
import { sentId, sentName } from "./call-names.ts";
import { rulesOf } from "./client-rules.ts";
import type { Destination } from "./destination.ts";
import { mediaText, titleOf, withBytes } from "./media.ts";
import {
  type CallPart,
  type FilePart,
  filePart,
  type Output,
  type ReasoningPart,
  type ResultPart,
  type TextPart,
  textPart,
} from "./prompt-parts.ts";
import { isObject, sentBack } from "./provider-json.ts";
import { type KeptPart, keptParts, saidBy } from "./reply-notes.ts";

export type AssistantPart<Data, Media, Other> =
  | TextPart
  | ReasoningPart
  | FilePart<Data>
  | CallPart
  | ResultPart<Media>
  | Other;

/** The blocks of a message, and between them what stood there besides: calls that the provider ran, for instance. */
export function assistantParts<Data, Media, Other>(
  message: AssistantMessage,
  to: Destination<Data, Media, Other>,
): AssistantPart<Data, Media, Other>[] {
  const own = ownOf(message, to);
  const kept = keptParts(message.provider);
  const parts: AssistantPart<Data, Media, Other>[] = [];
  const keptUpTo = (index: number): void => {
    for (const { at, part } of kept)
      if (index === message.content.length ? at >= index : at === index) parts.push(...keptPart(part, own, to));
  };
  for (const [index, block] of message.content.entries()) {
    keptUpTo(index);
    parts.push(...blockParts(block, own, to));
  }
  keptUpTo(message.content.length);
  return parts;
}

/** Whether the model that is asked can read everything in a message: it said that itself, or nobody knows who did. */
type Own = "said" | "unknown" | undefined;

function ownOf(message: AssistantMessage, { client, model, rules }: Destination<unknown, unknown, unknown>): Own {
  const from = saidBy(message.provider);
  if (from === undefined) return "unknown";
  if (rules.thoughtsStayWithModel === true && from.model !== undefined && from.model !== model) return undefined;
  if (from.client === client) return "said";
  const { family } = rules;
  return family !== undefined && family !== "openai" && rulesOf(from.client).family === family ? "said" : undefined;
}

function blockParts<Data, Media, Other>(
  block: AssistantMessage["content"][number],
  own: Own,
  to: Destination<Data, Media, Other>,
): AssistantPart<Data, Media, Other>[] {
  switch (block.type) {
    case "text":
      return textPart(own !== undefined ? block : { ...block, provider: forStrangers(block.provider, to) }, to);
    case "reasoning":
      return own !== undefined ? [{ type: "reasoning", text: block.text, ...sentBack(block.provider) }] : [];
    case "file":
      return [own === "said" ? filePart(block, undefined, { ...to, takesUrl: always }) : assistantFile(block, to)];
    case "call":
      if (isAskedByProvider(block, own, to)) return [askedPart(block, to)];
      return [callPart(own !== undefined ? block : { ...block, provider: forStrangers(block.provider, to) }, to)];
    default:
      return [];
  }
}

/** A file goes back to the model that made it, wherever it is. */
function always(): boolean {
  return true;
}

/** Items of another model's reply cannot be pointed at without its thoughts. */
function forStrangers(
  provider: JsonObject | undefined,
  { rules }: Destination<unknown, unknown, unknown>,
): JsonObject | undefined {
  if (rules.thoughtsStayWithModel !== true || provider === undefined) return provider;
  const { openai: _openai, azure: _azure, ...rest } = provider;
  return rest;
}

function assistantFile<Data>(given: FileBlock, to: Destination<Data, unknown, unknown>): FilePart<Data> | TextPart {
  const { assistantFiles } = to.rules;
  const block = withBytes(given);
  if (assistantFiles === undefined) return filePart(block, undefined, to);
  if (assistantFiles === "bytes" && block.data !== undefined) return filePart(block, undefined, to);
  to.warn(`the model does not read files that an assistant made, such as ${titleOf(block)}: it was sent as text`);
  return { type: "text", text: mediaText(block, "refused") };
}

/** Providers refuse arguments that are no object; what the model really wrote is told by the answer to the call. */
function callPart(block: ToolCallBlock, { client }: Destination<unknown, unknown, unknown>): CallPart {
  return {
    type: "tool-call",
    toolCallId: sentId(client, block.id),
    toolName: sentName(block.name),
    input: block.raw === undefined && isObject(block.args) ? block.args : {},
    ...sentBack(block.provider),
  };
}

/** The approvals that a message asks for, by the ids of their calls, where the model that is asked is the one that wants them. */
export function approvalsIn(
  message: AssistantMessage,
  to: Destination<unknown, unknown, unknown>,
): readonly (readonly [call: string, approval: string])[] {
  const own = ownOf(message, to);
  return message.content.flatMap((block) =>
    block.type === "call" && isAskedByProvider(block, own, to) ? [[block.id, block.approval] as const] : [],
  );
}

function isAskedByProvider(
  block: ToolCallBlock,
  own: Own,
  { dialect }: Destination<unknown, unknown, unknown>,
): block is ToolCallBlock & { readonly approval: string } {
  return block.approval !== undefined && own !== undefined && dialect.takesApprovals;
}

/** A call that the provider runs when it may. */
function askedPart(
  { id, name, args, raw, provider }: ToolCallBlock,
  { client }: Destination<unknown, unknown, unknown>,
): CallPart {
  const input = raw === undefined && isObject(args) ? args : {};
  return {
    type: "tool-call",
    toolCallId: sentId(client, id),
    toolName: name,
    input,
    providerExecuted: true,
    ...sentBack(provider),
  };
}

/** A kept part as its own client wants it back. Sources and parts that nobody knows are not sent. */
function keptPart<Data, Media, Other>(
  part: KeptPart["part"],
  own: Own,
  { dialect }: Destination<Data, Media, Other>,
): AssistantPart<Data, Media, Other>[] {
  const { type, toolCallId, toolName, input = {} } = part;
  if (typeof toolCallId !== "string" || typeof toolName !== "string") {
    const said = own !== undefined ? dialect.own(part) : undefined;
    return said === undefined ? [] : [said];
  }
  if (own === undefined) return type === "tool-call" ? [{ type: "text", text: ranLine(toolName, input) }] : [];
  const options = sentBack(part["providerMetadata"] as JsonObject | undefined);
  if (type === "tool-call") return [{ type, toolCallId, toolName, input, providerExecuted: true, ...options }];
  return type === "tool-result" ? [{ type, toolCallId, toolName, output: ranOutput(part), ...options }] : [];
}

const longestInput = 300;

function ranLine(toolName: string, input: unknown): string {
  const text = JSON.stringify(input);
  return `[Ran ${toolName} at the provider: ${text.length > longestInput ? `${text.slice(0, longestInput)}…` : text}]`;
}

function ranOutput({ result = null, isError }: JsonObject): Output<never> {
  const failed = isError === true;
  if (typeof result === "string") return { type: failed ? "error-text" : "text", value: result };
  return { type: failed ? "error-json" : "json", value: result };
}
