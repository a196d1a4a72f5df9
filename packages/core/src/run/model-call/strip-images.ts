/** Text replacement of images, for models without image input. */
import type { Message, TextBlock } from "../../model/message.ts";
import type { Model, ModelRequest } from "../../model/model.ts";

/** Replaces each image of a request with a line of text, for a model that declares no image input. */
export function stripImages({ images }: Model, request: ModelRequest): ModelRequest {
  if (images !== false || !request.messages.some(hasImage)) return request;
  return { ...request, messages: request.messages.map(stripMessageImages) };
}

function hasImage(message: Message): boolean {
  return typeof message.content !== "string" && message.content.some(({ type }) => type === "image");
}

function stripMessageImages(message: Message): Message {
  if (message.role !== "user" && message.role !== "tool") return message;
  const content = message.content.map((block) => (block.type === "image" ? toImageNote(block.mimeType) : block));
  return { ...message, content } as Message;
}

function toImageNote(mimeType: string): TextBlock {
  return { type: "text", text: `[An image (${mimeType}) that this model cannot see.]` };
}
