/** Reads provider data of a reply: provider-executed calls, and sources. */
import type { AssistantMessage, Json, JsonObject } from "@statewright/core";
import { listProviderParts } from "./reply-notes.ts";

/** A provider-executed call, with its result if available. */
export interface ProviderCall {
  readonly id: string;
  readonly name: string;
  readonly args: Json;
  readonly result?: Json;
  readonly isError: boolean;
}

/** Returns the provider-executed calls of a reply, in order. */
export function listProviderCalls({ provider }: Pick<AssistantMessage, "provider">): readonly ProviderCall[] {
  const parts = listProviderParts(provider).map(({ part }) => part);
  const results = new Map(
    parts.flatMap((part) => (part["type"] === "tool-result" ? [[part["toolCallId"], part]] : [])),
  );
  return parts.flatMap((part) => {
    const { type, toolCallId, toolName, input = null } = part;
    if (type !== "tool-call" || typeof toolCallId !== "string" || typeof toolName !== "string") return [];
    const { result, isError } = results.get(toolCallId) ?? {};
    const call = { id: toolCallId, name: toolName, args: input, isError: isError === true };
    return [result === undefined ? call : { ...call, result }];
  });
}

/** A source cited by a reply: a web page or a document. */
export interface ReplySource {
  readonly id: string;
  readonly url?: string;
  readonly title?: string;
  readonly mimeType?: string;
}

/** Returns the sources of a reply, in order. */
export function listSources({ provider }: Pick<AssistantMessage, "provider">): readonly ReplySource[] {
  return listProviderParts(provider).flatMap(({ part }) => (part["type"] === "source" ? [toReplySource(part)] : []));
}

function toReplySource({ id, url, title, mediaType }: JsonObject): ReplySource {
  return {
    id: String(id),
    ...(typeof url === "string" ? { url } : {}),
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof mediaType === "string" ? { mimeType: mediaType } : {}),
  };
}
