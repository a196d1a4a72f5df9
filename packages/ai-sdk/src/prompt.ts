/** Canonical messages as the prompt of a language model: the same order, ids, metadata and bytes, as far as its client takes them. */
import type { Message, ModelRequest, SystemMessage, UserMessage } from "@statewright/core";
import { type AssistantPart, approvalsIn, assistantParts } from "./assistant-parts.ts";
import type { Destination } from "./destination.ts";
import type { ApprovalOf } from "./dialect.ts";
import { type FilePart, filePart, type ResultPart, type TextPart, textPart, type WithOptions } from "./prompt-parts.ts";
import { sentBack } from "./provider-json.ts";
import { approvalPart, resultPart, shownBelow } from "./tool-result.ts";

/** One message of a prompt in the dialect of a specification. */
export type PromptMessage<Data, Media, Own> =
  | ({ role: "system"; content: string } & WithOptions)
  | { role: "user"; content: (TextPart | FilePart<Data>)[] }
  | { role: "assistant"; content: AssistantPart<Data, Media, Own>[] }
  | { role: "tool"; content: (ResultPart<Media> | ApprovalOf<Media>)[] };

/**
 * The prompt of a request. Answers to the calls of one message stand in one message. Messages without anything to send are
 * left out: providers refuse them. Where an answer can hold no file, the files of the answers stand in a message of the user
 * behind all of them.
 */
export function promptOf<Data, Media, Own>(
  request: Pick<ModelRequest, "instructions" | "messages">,
  to: Destination<Data, Media, Own>,
): PromptMessage<Data, Media, Own>[] {
  const prompt: PromptMessage<Data, Media, Own>[] = [];
  if (request.instructions !== undefined && request.instructions !== "") {
    prompt.push({ role: "system", content: request.instructions });
  }
  let files: (TextPart | FilePart<Data>)[] = [];
  const showFiles = (): void => {
    if (files.length > 0) prompt.push({ role: "user", content: files });
    files = [];
  };
  const approvals = new Map<string, string>();
  for (const message of request.messages) {
    if (message.role === "assistant")
      for (const [call, approval] of approvalsIn(message, to)) approvals.set(call, approval);
    if (message.role !== "tool") showFiles();
    const begun = prompt.some(({ role }) => role !== "system");
    const next = promptMessage(message, begun, approvals, to);
    if (next.content.length === 0 && !("providerOptions" in next)) continue;
    const last = prompt.at(-1);
    if (next.role === "tool" && last?.role === "tool") last.content.push(...next.content);
    else {
      if (!begun && next.role === "assistant" && to.rules.strictOrder === true) prompt.push(opening());
      prompt.push(next);
    }
    if (message.role === "tool") files.push(...shownBelow(message, to));
  }
  showFiles();
  return prompt;
}

/** Some providers refuse a conversation that begins with the assistant, as one does whose beginning was cut off. */
function opening<Data>(): { role: "user"; content: (TextPart | FilePart<Data>)[] } {
  return { role: "user", content: [{ type: "text", text: "[The conversation goes on.]" }] };
}

function promptMessage<Data, Media, Own>(
  message: Message,
  begun: boolean,
  approvals: ReadonlyMap<string, string>,
  to: Destination<Data, Media, Own>,
): PromptMessage<Data, Media, Own> {
  switch (message.role) {
    case "system":
      return systemMessage(message, begun, to);
    case "user":
      return { role: "user", content: userParts(message, to) };
    case "assistant":
      return { role: "assistant", content: assistantParts(message, to) };
    case "tool": {
      const approval = approvalPart(message, approvals.get(message.callId), to);
      return { role: "tool", content: [approval ?? resultPart(message, to)] };
    }
  }
}

/**
 * What the system says in the middle is said by the user, marked, where the client takes no system messages there. The
 * client of Anthropic takes one, but most of its models refuse it: one that has options for Anthropic is sent as it is.
 */
function systemMessage<Data, Media, Own>(
  { content, provider }: SystemMessage,
  begun: boolean,
  { rules, warn }: Destination<Data, Media, Own>,
): PromptMessage<Data, Media, Own> {
  const wanted = rules.family === "anthropic" && provider?.["anthropic"] !== undefined;
  if (!begun || rules.strictOrder !== true || wanted) return { role: "system", content, ...sentBack(provider) };
  warn("the model takes system messages at the beginning only: a later one was sent as one of the user, in <system>");
  return { role: "user", content: [{ type: "text", text: `<system>\n${content}\n</system>` }] };
}

function userParts<Data>(message: UserMessage, to: Destination<Data, unknown, unknown>): (TextPart | FilePart<Data>)[] {
  return message.content.flatMap((block): (TextPart | FilePart<Data>)[] => {
    switch (block.type) {
      case "text":
        return textPart(block, to);
      case "image":
      case "file":
        return [filePart(block, to.rules.media, to)];
      default:
        return [];
    }
  });
}
