/**
 * Converts messages to the prompt of a language model, keeping order, ids, metadata and bytes as far as the client
 * accepts them.
 */
import type { Message, ModelRequest, SystemMessage, UserMessage } from "@statewright/core";
import { type AssistantPart, listApprovals, toAssistantParts } from "./assistant-parts.ts";
import type { Destination } from "./destination.ts";
import type { ApprovalOf } from "./dialect.ts";
import {
  type FilePart,
  type ResultPart,
  type TextPart,
  toFilePart,
  toTextParts,
  type WithOptions,
} from "./prompt-parts.ts";
import { toProviderOptions } from "./provider-json.ts";
import { toApprovalPart, toResultPart, toTrailingFileParts } from "./tool-result.ts";

/** Prompt message in the dialect of a specification. */
export type PromptMessage<Data, Media, NativePart> =
  | ({ role: "system"; content: string } & WithOptions)
  | { role: "user"; content: (TextPart | FilePart<Data>)[] }
  | { role: "assistant"; content: AssistantPart<Data, Media, NativePart>[] }
  | { role: "tool"; content: (ResultPart<Media> | ApprovalOf<Media>)[] };

/**
 * Returns the prompt of a request. Results of the calls of an assistant message share a tool message. Empty
 * messages are left out: providers reject them. If tool results cannot hold files, the files follow in a user
 * message.
 */
export function toPrompt<Data, Media, NativePart>(
  request: Pick<ModelRequest, "instructions" | "messages">,
  to: Destination<Data, Media, NativePart>,
): PromptMessage<Data, Media, NativePart>[] {
  const prompt: PromptMessage<Data, Media, NativePart>[] = [];
  if (request.instructions !== undefined && request.instructions !== "") {
    prompt.push({ role: "system", content: request.instructions });
  }
  let files: (TextPart | FilePart<Data>)[] = [];
  const flushFiles = (): void => {
    if (files.length > 0) prompt.push({ role: "user", content: files });
    files = [];
  };
  const approvals = new Map<string, string>();
  for (const message of request.messages) {
    if (message.role === "assistant")
      for (const [call, approval] of listApprovals(message, to)) approvals.set(call, approval);
    if (message.role !== "tool") flushFiles();
    const isStarted = prompt.some(({ role }) => role !== "system");
    const next = toPromptMessage(message, { isStarted, approvals }, to);
    if (next.content.length === 0 && !("providerOptions" in next)) continue;
    const last = prompt.at(-1);
    if (next.role === "tool" && last?.role === "tool") last.content.push(...next.content);
    else {
      if (!isStarted && next.role === "assistant" && to.rules.strictOrder === true) prompt.push(createOpeningMessage());
      prompt.push(next);
    }
    if (message.role === "tool") files.push(...toTrailingFileParts(message, to));
  }
  flushFiles();
  return prompt;
}

/** Some providers reject a conversation that starts with an assistant message, e.g. after trimming. */
function createOpeningMessage<Data>(): { role: "user"; content: (TextPart | FilePart<Data>)[] } {
  return { role: "user", content: [{ type: "text", text: "[The conversation continues.]" }] };
}

/** Conversation before a message. */
interface Conversation {
  /** True when the prompt has a message other than system messages. */
  readonly isStarted: boolean;
  /** Approval request ids by call id. */
  readonly approvals: ReadonlyMap<string, string>;
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
