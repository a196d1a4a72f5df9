/** The calls of a reply while it streams: their ids, their argument text as it comes, and what the text says at last. */
import type { Json, JsonObject, ModelRequest, ToolCallBlock } from "@statewright/core";
import { freeIds } from "./call-names.ts";
import { isObject, merged, plainObject, present } from "./provider-json.ts";
import type { Part } from "./stream-part.ts";

/** The calls of a reply, with ids that no call of the conversation had before. */
export function callLog(messages: ModelRequest["messages"]): {
  readonly start: (part: Part<"tool-input-start">) => void;
  /** The call, when its text is to be shown as it comes. */
  readonly grow: (part: Part<"tool-input-delta">) => { readonly id: string; readonly name: string } | undefined;
  /** The whole call, and what of its text was not shown. */
  readonly finish: (part: Part<"tool-call">) => { readonly block: ToolCallBlock; readonly unseen: string };
  /** A call that the provider ran after all. */
  readonly forget: (id: string) => void;
  /** Calls that never became whole: cut, or broken so that the client said no more of them. Each wants an answer. */
  readonly unfinished: () => ToolCallBlock[];
} {
  interface StartedCall {
    readonly id: string;
    readonly name: string;
    readonly provider: JsonObject | undefined;
    /** Text that is no JSON yet would be read as broken JSON: such arguments are shown when they are whole. */
    readonly shown: boolean;
    text: string;
  }
  const started = new Map<string, StartedCall>();
  let give: ((id: string) => string) | undefined;
  const freeId = (id: string): string => {
    give ??= freeIds(callIds(messages));
    return give(id);
  };
  return {
    start: (part) => {
      if (part.providerExecuted === true) return;
      started.set(part.id, {
        id: freeId(part.id),
        name: part.toolName,
        provider: plainObject(part.providerMetadata),
        shown: !("inputEncoding" in part && part.inputEncoding === "text"),
        text: "",
      });
    },
    grow: (part) => {
      const call = started.get(part.id);
      if (call === undefined) return undefined;
      call.text += part.delta;
      return call.shown ? { id: call.id, name: call.name } : undefined;
    },
    finish: (part) => {
      const known = started.get(part.toolCallId);
      started.delete(part.toolCallId);
      const { text, ...args } = argsOf(part.input);
      const block: ToolCallBlock = {
        type: "call",
        id: known?.id ?? freeId(part.toolCallId),
        name: part.toolName,
        ...args,
        ...present({ provider: merged(known?.provider, part.providerMetadata) }),
      };
      return { block, unseen: known?.shown === true && known.text !== "" ? "" : text };
    },
    forget: (id) => void started.delete(id),
    unfinished: () =>
      [...started.values()].map(({ id, name, text, provider }) => {
        const { text: _shown, ...args } = argsOf(text);
        return { type: "call", id, name, ...args, ...present({ provider }) };
      }),
  };
}

function callIds(messages: ModelRequest["messages"]): string[] {
  return messages.flatMap((message) =>
    message.role === "assistant" ? message.content.flatMap((block) => (block.type === "call" ? block.id : [])) : [],
  );
}

/** Arguments from their text. What is not one JSON object is told as it came, and never taken for an empty object. */
function argsOf(input: unknown): { readonly text: string; readonly args: Json; readonly raw?: string } {
  const text = typeof input === "string" ? input : (JSON.stringify(input) ?? "");
  if (text.trim() === "") return { text: "", args: {} };
  const args = parsed(text);
  return isObject(args) ? { text, args } : { text, args: null, raw: text };
}

/** JSON text as its value, or undefined when it is none. */
export function parsed(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
