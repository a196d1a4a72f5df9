/** A conversation as text that another model reads: who said what, which tools were called, what they gave. */
import { type ContentBlock, type Message, textOf, wordsOf } from "@statewright/core";

/** How much of one result or one call's arguments is shown. */
const longest = 4_000;

/** One message as a paragraph. */
export function messageText(message: Message): string {
  switch (message.role) {
    case "assistant":
      return [
        ...(textOf(message) === "" ? [] : [`assistant: ${textOf(message)}`]),
        ...message.content.flatMap((block) =>
          block.type === "call" ? `assistant calls ${block.name}: ${cut(block.raw ?? JSON.stringify(block.args))}` : [],
        ),
      ].join("\n");
    case "tool":
      return `${message.isError ? "error of" : "result of"} ${message.name}: ${cut(message.content.map(blockText).join("\n"))}`;
    case "user":
      return `user: ${message.content.map(blockText).join("\n")}`;
    default:
      return `system: ${message.content}`;
  }
}

function blockText(block: ContentBlock): string {
  const words = wordsOf(block) ?? `[${block.type}]`;
  return block.type === "artifact" ? `[artifact ${block.ref.handle}, ${block.ref.name}] ${words}` : words;
}

function cut(text: string): string {
  return text.length <= longest ? text : `${text.slice(0, longest)} […]`;
}
