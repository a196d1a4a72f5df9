/** What stands with a reply besides its blocks: what the provider ran itself, and the sources that it names. */
import type { AssistantMessage, Json, JsonObject } from "@statewright/core";
import { keptParts } from "./reply-notes.ts";

/** A call that the provider ran, with its result as far as it has come. */
export interface ProviderCall {
  readonly id: string;
  readonly name: string;
  readonly args: Json;
  readonly result?: Json;
  readonly isError: boolean;
}

/** The calls that a provider ran for a reply, in their order. */
export function providerCallsOf({ provider }: Pick<AssistantMessage, "provider">): readonly ProviderCall[] {
  const parts = keptParts(provider).map(({ part }) => part);
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

/** A source that a reply names: a page, or a document. */
export interface ReplySource {
  readonly id: string;
  readonly url?: string;
  readonly title?: string;
  readonly mimeType?: string;
}

/** The sources of a reply, in their order. */
export function sourcesOf({ provider }: Pick<AssistantMessage, "provider">): readonly ReplySource[] {
  return keptParts(provider).flatMap(({ part }) => (part["type"] === "source" ? [sourceOf(part)] : []));
}

function sourceOf({ id, url, title, mediaType }: JsonObject): ReplySource {
  return {
    id: String(id),
    ...(typeof url === "string" ? { url } : {}),
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof mediaType === "string" ? { mimeType: mediaType } : {}),
  };
}
