/**
 * Memory of the prompts of a model: a request converts the new messages of its conversation only. Everything is
 * held by messages through weak maps, and disappears with them.
 */
import type { Message } from "@statewright/core";
import { isPrefix } from "../call-names.ts";
import type { Destination } from "../destination.ts";
import { type ConvertedMessage, convertMessage } from "./convert-message.ts";
import { PromptAssembly } from "./prompt-assembly.ts";

/** The assembled start of a conversation. */
export interface AssembledStart<Data, Media, NativePart> {
  readonly messages: Message[];
  readonly assembly: PromptAssembly<Data, Media, NativePart>;
}

/** Conversions by message, and assembled prompts by conversation. */
export class PromptMemory<Data, Media, NativePart> {
  readonly #conversions = new WeakMap<Message, ConvertedMessage<Data, Media, NativePart>>();
  /** By the first message. */
  readonly #starts = new WeakMap<Message, AssembledStart<Data, Media, NativePart>>();

  /**
   * Finds the assembled start of the messages; undefined for a new conversation. Costs a single comparison per message
   * of the start.
   */
  findStart(messages: readonly Message[]): AssembledStart<Data, Media, NativePart> | undefined {
    const start = messages[0] && this.#starts.get(messages[0]);
    return start !== undefined && isPrefix(start.messages, messages) ? start : undefined;
  }

  /** Returns the assembled prompt of the messages, with messages of its own. `known` is their start. */
  assemble(
    messages: readonly Message[],
    to: Destination<Data, Media, NativePart>,
    known: AssembledStart<Data, Media, NativePart> | undefined = this.findStart(messages),
  ): PromptAssembly<Data, Media, NativePart> {
    const start = known ?? this.#createStart(messages[0], to);
    let next = start.messages.length;
    for (let message = messages[next]; message !== undefined; message = messages[++next]) {
      const converted = this.#findConversion(message, start.assembly, to);
      if (converted === undefined) break;
      start.assembly.add(converted);
      start.messages.push(message);
    }
    const whole = start.assembly.copy();
    for (let message = messages[next]; message !== undefined; message = messages[++next])
      whole.add(this.#findConversion(message, whole, to) ?? convertMessage(message, whole, to));
    return whole;
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

/** Returns true if a message from the position `from` on has a file that is given by its URL. */
export function hasUrlFrom(messages: readonly Message[], from: number): boolean {
  for (let index = from; index < messages.length; index++) if (hasUrl(messages[index] as Message)) return true;
  return false;
}

function hasUrl({ content }: Message): boolean {
  if (typeof content === "string") return false;
  for (const block of content) if ("url" in block && block.url !== undefined) return true;
  return false;
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
  for (const key in value) freezeParts(value[key as keyof typeof value]);
}
