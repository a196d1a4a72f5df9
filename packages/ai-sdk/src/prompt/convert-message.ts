/** Converts a single message to a prompt message, with the facts that the prompt around it needs. */
import type { Message, SystemMessage, UserMessage } from "@statewright/core";
import type { Destination } from "../destination.ts";
import type { ApprovalOf } from "../dialect.ts";
import { toProviderOptions } from "../provider-json.ts";
import { type AssistantPart, listApprovals, toAssistantParts } from "./assistant-parts.ts";
import {
  type FilePart,
  type ResultPart,
  type TextPart,
  toFilePart,
  toTextParts,
  type WithOptions,
} from "./prompt-parts.ts";
import { toApprovalPart, toResultPart, toTrailingFileParts } from "./tool-result.ts";

/** Prompt message in the dialect of a specification. */
export type PromptMessage<Data, Media, NativePart> =
  | ({ role: "system"; content: string } & WithOptions)
  | { role: "user"; content: (TextPart | FilePart<Data>)[] }
  | { role: "assistant"; content: AssistantPart<Data, Media, NativePart>[] }
  | { role: "tool"; content: (ResultPart<Media> | ApprovalOf<Media>)[] };

/** Conversion of a message, with the facts that the prompt needs of the message. */
export interface ConvertedMessage<Data, Media, NativePart> {
  readonly message: PromptMessage<Data, Media, NativePart>;
  /** Files of a tool message that follow in a user message. */
  readonly files: readonly (TextPart | FilePart<Data>)[];
  /** Approval request ids by call id. */
  readonly approvals: readonly (readonly [call: string, approval: string])[];
  /** Warnings of the conversion: every request with the message reports them. */
  readonly warnings: readonly string[];
}

/** Conversation before a message. */
export interface Conversation {
  /** True when the prompt has a message other than system messages. */
  readonly isStarted: boolean;
  /** Approval request ids by call id. */
  readonly approvals: ReadonlyMap<string, string>;
}

/** Converts a message. The warnings are collected in the result. */
export function convertMessage<Data, Media, NativePart>(
  message: Message,
  conversation: Conversation,
  to: Destination<Data, Media, NativePart>,
): ConvertedMessage<Data, Media, NativePart> {
  const warnings: string[] = [];
  const { client, model, rules, dialect, takesUrl } = to;
  // Named fields: a spread of the destination costs more than the conversion of a short message.
  const collecting: Destination<Data, Media, NativePart> = {
    client,
    model,
    rules,
    dialect,
    takesUrl,
    warn: (warning) => void warnings.push(warning),
  };
  return {
    message: toPromptMessage(message, conversation, collecting),
    files: message.role === "tool" ? toTrailingFileParts(message, collecting) : [],
    approvals: message.role === "assistant" ? listApprovals(message, collecting) : [],
    warnings,
  };
}

function toPromptMessage<Data, Media, NativePart>(
  message: Message,
  { isStarted, approvals }: Conversation,
  to: Destination<Data, Media, NativePart>,
): PromptMessage<Data, Media, NativePart> {
  switch (message.role) {
    case "system":
      return isStarted ? toLaterSystemMessage(message, to) : toSystemMessage(message);
    case "user":
      return { role: "user", content: toUserParts(message, to) };
    case "assistant":
      return { role: "assistant", content: toAssistantParts(message, to) };
    case "tool": {
      const approval = toApprovalPart(message, approvals.get(message.callId), to);
      return { role: "tool", content: [approval ?? toResultPart(message, to)] };
    }
  }
}

function toSystemMessage<Data, Media, NativePart>({
  content,
  provider,
}: SystemMessage): PromptMessage<Data, Media, NativePart> {
  return { role: "system", content, ...toProviderOptions(provider) };
}

/**
 * Sends a system message in mid-conversation as a marked user message if the client accepts system messages only at
 * the start. The Anthropic client accepts such a message, but most Anthropic models reject the message: a message with
 * Anthropic options is sent unchanged.
 */
function toLaterSystemMessage<Data, Media, NativePart>(
  message: SystemMessage,
  { rules, warn }: Destination<Data, Media, NativePart>,
): PromptMessage<Data, Media, NativePart> {
  const { content, provider } = message;
  const isNative = rules.family === "anthropic" && provider?.["anthropic"] !== undefined;
  if (rules.strictOrder !== true || isNative) return toSystemMessage(message);
  warn(
    "the model accepts system messages only at the start: a later system message was sent as a user message in <system>",
  );
  return { role: "user", content: [{ type: "text", text: `<system>\n${content}\n</system>` }] };
}

function toUserParts<Data>(
  message: UserMessage,
  to: Destination<Data, unknown, unknown>,
): (TextPart | FilePart<Data>)[] {
  return message.content.flatMap((block): (TextPart | FilePart<Data>)[] => {
    switch (block.type) {
      case "text":
        return toTextParts(block, to);
      case "image":
      case "file":
        return [toFilePart(block, to.rules.media, to)];
      default:
        return [];
    }
  });
}
