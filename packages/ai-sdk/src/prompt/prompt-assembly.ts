/** Assembles converted messages into a prompt, in the order and grouping that providers accept. */
import type { Message } from "@statewright/core";
import type { ClientRules } from "../client-rules.ts";
import type { Conversation, ConvertedMessage, PromptMessage } from "./convert-message.ts";
import type { FilePart, TextPart } from "./prompt-parts.ts";

/**
 * A prompt that grows by messages. Results of the calls of an assistant message share a tool message. Empty messages
 * are left out: providers reject them. If tool results cannot hold files, the files follow in a user message.
 */
export class PromptAssembly<Data, Media, NativePart> implements Conversation {
  readonly #rules: ClientRules;
  #prompt: PromptMessage<Data, Media, NativePart>[] = [];
  #files: (TextPart | FilePart<Data>)[] = [];
  #warnings: string[] = [];
  #approvals = new Map<string, string>();
  #isStarted = false;

  constructor(rules: ClientRules) {
    this.#rules = rules;
  }

  get isStarted(): boolean {
    return this.#isStarted;
  }

  get approvals(): ReadonlyMap<string, string> {
    return this.#approvals;
  }

  /** Warnings of the conversions, in the order of the messages. */
  get warnings(): readonly string[] {
    return this.#warnings;
  }

  /** Returns true for a message whose form depends on the messages before it. */
  decides(message: Message): boolean {
    return message.role === "system" || (message.role === "tool" && this.#approvals.has(message.callId));
  }

  add({ message, files, approvals, warnings }: ConvertedMessage<Data, Media, NativePart>): void {
    for (const [call, approval] of approvals) this.#approvals.set(call, approval);
    this.#warnings.push(...warnings);
    if (message.role !== "tool") this.#flushFiles();
    if (message.content.length === 0 && !("providerOptions" in message)) return;
    const last = this.#prompt.at(-1);
    if (message.role === "tool" && last?.role === "tool") last.content.push(...message.content);
    else {
      if (!this.#isStarted && message.role === "assistant" && this.#rules.strictOrder === true)
        this.#prompt.push(createOpeningMessage());
      this.#prompt.push(copyMessage(message));
    }
    if (message.role !== "system") this.#isStarted = true;
    this.#files.push(...files);
  }

  /** Returns an independent copy with the same frozen parts. */
  copy(): PromptAssembly<Data, Media, NativePart> {
    const copy = new PromptAssembly<Data, Media, NativePart>(this.#rules);
    for (const message of this.#prompt) copy.#prompt.push(copyMessage(message));
    copy.#files = [...this.#files];
    copy.#warnings = [...this.#warnings];
    copy.#approvals = new Map(this.#approvals);
    copy.#isStarted = this.#isStarted;
    return copy;
  }

  /** Returns the prompt. No message may follow. */
  finish(): PromptMessage<Data, Media, NativePart>[] {
    this.#flushFiles();
    return this.#prompt;
  }

  #flushFiles(): void {
    if (this.#files.length > 0) this.#prompt.push({ role: "user", content: this.#files });
    this.#files = [];
  }
}

/** Copies a prompt message, so that a middleware of the AI SDK can change the message for a single request. */
function copyMessage<Data, Media, NativePart>(
  message: PromptMessage<Data, Media, NativePart>,
): PromptMessage<Data, Media, NativePart> {
  switch (message.role) {
    case "system":
      return { ...message };
    case "user":
      return { role: "user", content: message.content.slice() };
    case "assistant":
      return { role: "assistant", content: message.content.slice() };
    case "tool":
      return { role: "tool", content: message.content.slice() };
  }
}

/** Some providers reject a conversation that starts with an assistant message, e.g. after trimming. */
function createOpeningMessage<Data>(): { role: "user"; content: (TextPart | FilePart<Data>)[] } {
  return { role: "user", content: [{ type: "text", text: "[The conversation continues.]" }] };
}
