/** Formats messages, tool calls and results as text for another model. */
import { type ContentBlock, getMessageText, type Message } from "@statewright/core";
import { getBlockText } from "@statewright/core/adapter";

/** Maximum characters of a result or of the arguments of a call. */
const maxCharacters = 4_000;

/** Formats a message as a paragraph. */
export function formatMessage(message: Message): string {
  switch (message.role) {
    case "assistant":
      return [
        ...(getMessageText(message) === "" ? [] : [`assistant: ${getMessageText(message)}`]),
        ...message.content.flatMap((block) =>
          block.type === "call"
            ? `assistant calls ${block.name}: ${truncate(block.raw ?? JSON.stringify(block.args))}`
            : [],
        ),
      ].join("\n");
    case "tool":
      return `${message.isError ? "error of" : "result of"} ${message.name}: ${truncate(message.content.map(formatBlock).join("\n"))}`;
    case "user":
      return `user: ${message.content.map(formatBlock).join("\n")}`;
    default:
      return `system: ${message.content}`;
  }
}

function formatBlock(block: ContentBlock): string {
  const text = getBlockText(block) ?? `[${block.type}]`;
  return block.type === "artifact" ? `[artifact ${block.ref.handle}, ${block.ref.name}] ${text}` : text;
}

function truncate(text: string): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters)} […]`;
}
