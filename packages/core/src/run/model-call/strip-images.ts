/** What a model that cannot see reads in place of images. */
import type { Message, TextBlock } from "../../model/message.ts";
import type { Model, ModelRequest } from "../../model/model.ts";

/** The request with a line of text for each image, where the model says that it sees none. */
export function withoutImages({ images }: Model, request: ModelRequest): ModelRequest {
  if (images !== false || !request.messages.some(hasImage)) return request;
  return { ...request, messages: request.messages.map(named) };
}

function hasImage(message: Message): boolean {
  return typeof message.content !== "string" && message.content.some(({ type }) => type === "image");
}

function named(message: Message): Message {
  if (message.role !== "user" && message.role !== "tool") return message;
  const content = message.content.map((block) => (block.type === "image" ? noteOf(block.mimeType) : block));
  return { ...message, content } as Message;
}

function noteOf(mimeType: string): TextBlock {
  return { type: "text", text: `[An image (${mimeType}) that this model cannot see.]` };
}
