/**
 * Memory of the prompts of one model: a request converts the new messages of its conversation only. Everything is
 * held by messages through weak maps, and disappears with them.
 */
import type { Message } from "@statewright/core";
import { isPrefix } from "../call-names.ts";
import type { Destination } from "../destination.ts";
import { type ConvertedMessage, convertMessage } from "./convert-message.ts";
import { PromptAssembly } from "./prompt-assembly.ts";

/** The assembled start of a conversation. */
interface AssembledStart<Data, Media, NativePart> {
  readonly messages: Message[];
  readonly assembly: PromptAssembly<Data, Media, NativePart>;
}

/** Conversions by message, and assembled prompts by conversation. */
export class PromptMemory<Data, Media, NativePart> {
  readonly #conversions = new WeakMap<Message, ConvertedMessage<Data, Media, NativePart>>();
  /** By the first message. */
  readonly #starts = new WeakMap<Message, AssembledStart<Data, Media, NativePart>>();

  /** Returns the messages after the assembled start. Costs one comparison per message of the start. */
  listNewMessages(messages: readonly Message[]): readonly Message[] {
    return messages.slice(this.#findStart(messages)?.messages.length ?? 0);
  }

  /** Returns the assembled prompt of the messages, with messages of its own. */
  assemble(
    messages: readonly Message[],
    to: Destination<Data, Media, NativePart>,
  ): PromptAssembly<Data, Media, NativePart> {
    const start = this.#findStart(messages) ?? this.#createStart(messages[0], to);
    let next = start.messages.length;
    for (let message = messages[next]; message !== undefined; message = messages[++next]) {
      const converted = this.#findConversion(message, start.assembly, to);
      if (converted === undefined) break;
      start.assembly.add(converted);
      start.messages.push(message);
    }
    const whole = start.assembly.copy();
    for (const message of messages.slice(next))
      whole.add(this.#findConversion(message, whole, to) ?? convertMessage(message, whole, to));
    return whole;
  }

  #findStart(messages: readonly Message[]): AssembledStart<Data, Media, NativePart> | undefined {
    const start = messages[0] && this.#starts.get(messages[0]);
    return start !== undefined && isPrefix(start.messages, messages) ? start : undefined;
  }

  #createStart(
    first: Message | undefined,
    { rules }: Destination<Data, Media, NativePart>,
  ): AssembledStart<Data, Media, NativePart> {
    const start = { messages: [], assembly: new PromptAssembly<Data, Media, NativePart>(rules) };
    if (first !== undefined) this.#starts.set(first, start);
    return start;
  }

  /** Returns the conversion of a message that can be kept; undefined for another message. */
  #findConversion(
    message: Message,
    assembly: PromptAssembly<Data, Media, NativePart>,
    to: Destination<Data, Media, NativePart>,
  ): ConvertedMessage<Data, Media, NativePart> | undefined {
    const known = this.#conversions.get(message);
    if (known !== undefined) return known;
    if (!isLasting(message)) return undefined;
    const converted = convertMessage(message, assembly, to);
    for (const part of converted.message.content) freezeParts(part);
    for (const part of converted.files) freezeParts(part);
    if (!assembly.decides(message)) this.#conversions.set(message, converted);
    return converted;
  }
}

/**
 * Returns true for a message whose conversion can be kept: the message is frozen at any depth, and has no URL, which
 * some models read and others do not.
 */
function isLasting(message: Message): boolean {
  return !hasUrl(message) && isDeeplyFrozen(message);
}

/** Returns true for a message with a file that is given by its URL. */
export function hasUrl({ content }: Message): boolean {
  return typeof content !== "string" && content.some((block) => "url" in block && block.url !== undefined);
}

/** Maximum nesting of a memoized message; a deeper message is converted in each request. */
const maxDepth = 100;

function isDeeplyFrozen(value: object, level = 0): boolean {
  if (level > maxDepth || !Object.isFrozen(value)) return false;
  for (const key in value) {
    const inner: unknown = value[key as keyof typeof value];
    if (typeof inner === "object" && inner !== null && !isDeeplyFrozen(inner, level + 1)) return false;
  }
  return true;
}

/** Freezes a part, which later prompts share. The values that the part shares with its message are frozen already. */
function freezeParts(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const inner of Object.values(value)) freezeParts(inner);
}
