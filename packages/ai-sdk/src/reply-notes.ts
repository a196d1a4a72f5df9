/** Reply data without a message block, stored under `provider.statewright` of the message. */
import type { Json, JsonObject } from "@statewright/core";
import { adapterKey, isObject } from "./provider-json.ts";

/**
 * A reply part without a message block, such as a provider-executed call, with the index of the block that follows.
 */
export interface ProviderPart {
  readonly at: number;
  readonly part: JsonObject;
}

/** Reply data besides blocks, finish reason and usage; unknown fields are absent. */
export interface ReplyNotes {
  /** Client that produced the reply, such as `anthropic.messages`: only this client gets provider parts back. */
  readonly from: string;
  /** Requested model id. */
  readonly model?: string;
  /** The provider's raw finish reason. */
  readonly reason?: string;
  readonly response?: JsonObject;
  readonly warnings?: readonly Json[];
  readonly providerParts?: readonly ProviderPart[];
}

/** Returns reply notes as JSON. */
export function toStoredNotes(notes: ReplyNotes): JsonObject {
  const { providerParts, ...rest } = notes;
  return {
    ...rest,
    ...(providerParts === undefined ? {} : { providerParts: providerParts.map(({ at, part }) => ({ at, part })) }),
  };
}

/** Returns client and model of a stored message, or undefined if unknown. */
export function getReplyAuthor(
  provider: JsonObject | undefined,
): { readonly client: string; readonly model: string | undefined } | undefined {
  const notes = provider?.[adapterKey];
  if (!isObject(notes) || typeof notes["from"] !== "string") return undefined;
  return { client: notes["from"], model: typeof notes["model"] === "string" ? notes["model"] : undefined };
}

/** Returns the provider parts of a stored message. */
export function listProviderParts(provider: JsonObject | undefined): readonly ProviderPart[] {
  const notes = provider?.[adapterKey];
  if (!isObject(notes) || !Array.isArray(notes["providerParts"])) return [];
  return (notes["providerParts"] as readonly Json[]).flatMap((entry) => {
    if (!isObject(entry)) return [];
    const { at, part } = entry;
    return typeof at === "number" && isObject(part) ? [{ at, part }] : [];
  });
}
