/** Collects the tool calls of a streaming reply: ids, partial argument text, and the parsed arguments at the end. */
import type { Json, JsonObject, ModelRequest, ToolCallBlock } from "@statewright/core";
import { createIdAllocator } from "./call-names.ts";
import { isObject, mergeMetadata, omitUndefined, toJsonObject } from "./provider-json.ts";
import type { Part } from "./stream-part.ts";

interface StartedCall {
  readonly id: string;
  readonly name: string;
  readonly provider: JsonObject | undefined;
  /** False for freeform text arguments: such arguments are streamed once complete, because a part is no JSON. */
  readonly streamed: boolean;
  text: string;
}

/** Log of the calls of a reply; each call gets an id that is unique within the conversation. */
export class CallLog {
  readonly #messages: ModelRequest["messages"];
  readonly #started = new Map<string, StartedCall>();
  #allocate: ((id: string) => string) | undefined;

  constructor(messages: ModelRequest["messages"]) {
    this.#messages = messages;
  }

  start(part: Part<"tool-input-start">): void {
    if (part.providerExecuted === true) return;
    this.#started.set(part.id, {
      id: this.#allocateId(part.id),
      name: part.toolName,
      provider: toJsonObject(part.providerMetadata),
      streamed: !("inputEncoding" in part && part.inputEncoding === "text"),
      text: "",
    });
  }

  /** Appends argument text. Returns the call if its arguments are streamed, otherwise undefined. */
  append(part: Part<"tool-input-delta">): { readonly id: string; readonly name: string } | undefined {
    const call = this.#started.get(part.id);
    if (call === undefined) return undefined;
    call.text += part.delta;
    return call.streamed ? { id: call.id, name: call.name } : undefined;
  }

  /** Returns the complete call, and the argument text not yet streamed. */
  finish(part: Part<"tool-call">): { readonly block: ToolCallBlock; readonly unstreamed: string } {
    const known = this.#started.get(part.toolCallId);
    this.#started.delete(part.toolCallId);
    const { text, args, raw } = parseArgs(part.input);
    const id = known?.id ?? this.#allocateId(part.toolCallId);
    const provider = mergeMetadata(known?.provider, part.providerMetadata);
    const block = createCallBlock({ id, name: part.toolName, args, raw, provider });
    return { block, unstreamed: known?.streamed === true && known.text !== "" ? "" : text };
  }

  /** Removes a call executed by the provider. */
  remove(id: string): void {
    this.#started.delete(id);
  }

  /** Returns calls without an end, truncated or broken in the stream. Each call needs a tool result. */
  listUnfinished(): ToolCallBlock[] {
    return [...this.#started.values()].map(({ id, name, text, provider }) => {
      const { args, raw } = parseArgs(text);
      return createCallBlock({ id, name, args, raw, provider });
    });
  }

  #allocateId(id: string): string {
    this.#allocate ??= createIdAllocator(this.#messages);
    return this.#allocate(id);
  }
}

interface CallParts {
  readonly id: string;
  readonly name: string;
  readonly args: Json;
  readonly raw: string | undefined;
  readonly provider: JsonObject | undefined;
}

function createCallBlock({ id, name, args, raw, provider }: CallParts): ToolCallBlock {
  if (raw === undefined && provider === undefined) return { type: "call", id, name, args };
  return { type: "call", id, name, args, ...omitUndefined({ raw, provider }) };
}

/** Parses arguments. Text other than a single JSON object is returned as `raw`, never as an empty object. */
function parseArgs(input: unknown): { readonly text: string; readonly args: Json; readonly raw?: string } {
  const text = typeof input === "string" ? input : (JSON.stringify(input) ?? "");
  if (text.trim() === "") return { text: "", args: {} };
  const args = parseJson(text);
  return isObject(args) ? { text, args } : { text, args: null, raw: text };
}

/** Returns the JSON value of a text, or undefined for invalid JSON. */
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
