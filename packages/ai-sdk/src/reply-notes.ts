/** What a reply says that the blocks of a message cannot hold: saved under `provider.statewright` of the message. */
import type { Json, JsonObject } from "@statewright/core";
import { isObject, ownKey } from "./provider-json.ts";

/** A part that is no block of ours, such as a call that the provider ran itself, and the block before which it stood. */
export interface KeptPart {
  readonly at: number;
  readonly part: JsonObject;
}

/** Everything about a reply besides its blocks, finish and usage; what is unknown is absent. */
export interface ReplyNotes {
  /** The client that answered, such as `anthropic.messages`: only it gets its kept parts back. */
  readonly from: string;
  /** The model that answered, as it was asked for. */
  readonly model?: string;
  /** The provider's own word for why the model stopped. */
  readonly reason?: string;
  readonly response?: JsonObject;
  readonly warnings?: readonly Json[];
  readonly kept?: readonly KeptPart[];
}

/** The notes as they are saved. */
export function savedNotes(notes: ReplyNotes): JsonObject {
  const { kept, ...rest } = notes;
  return { ...rest, ...(kept === undefined ? {} : { kept: kept.map(({ at, part }) => ({ at, part })) }) };
}

/** Who said a saved message: client and model; nothing where that is not known. */
export function saidBy(
  provider: JsonObject | undefined,
): { readonly client: string; readonly model: string | undefined } | undefined {
  const notes = provider?.[ownKey];
  if (!isObject(notes) || typeof notes["from"] !== "string") return undefined;
  return { client: notes["from"], model: typeof notes["model"] === "string" ? notes["model"] : undefined };
}

/** The kept parts of a saved message. */
export function keptParts(provider: JsonObject | undefined): readonly KeptPart[] {
  const notes = provider?.[ownKey];
  if (!isObject(notes) || !Array.isArray(notes["kept"])) return [];
  return (notes["kept"] as readonly Json[]).flatMap((kept) => {
    if (!isObject(kept)) return [];
    const { at, part } = kept;
    return typeof at === "number" && isObject(part) ? [{ at, part }] : [];
  });
}
