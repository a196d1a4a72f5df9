/** A thread whose model says what the test tells it, when the test tells it. */
import {
  type AssistantMessage,
  channel,
  defineGraph,
  defineState,
  END,
  fork,
  getMessageText,
  type Message,
  type Model,
  memoryStore,
  type Relay,
  type RunEvent,
  run,
  START,
  type Store,
  submit,
} from "@statewright/core";
import { memoryRelay } from "@statewright/core/store";
import { type VirtualClock, virtualClock } from "@statewright/testing";
import type { ThreadFrame } from "../../src/service/caller-service.ts";

interface OpenRequest {
  readonly delta: ((text: string) => void) | undefined;
  readonly words: string[];
  readonly finish: () => void;
}

/** Model with at most one open request, which the test answers word by word. */
export class Speaker {
  #request: OpenRequest | undefined;
  #onRequest: (() => void) | undefined;

  readonly model: Model = {
    id: "speaker",
    respond: async (_, { delta, signal }) => {
      const words: string[] = [];
      await new Promise<void>((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        const say = delta && ((text: string) => delta({ type: "text", text }));
        this.#request = { words, finish: resolve, delta: say };
        this.#onRequest?.();
      });
      return {
        content: [{ type: "text", text: words.join("") }],
        finish: "stop",
        usage: { inputTokens: 3, outputTokens: words.length },
      };
    },
  };

  /** Resolves when a request is open. */
  async waitForRequest(): Promise<void> {
    if (this.#request === undefined)
      await new Promise<void>((resolve) => {
        this.#onRequest = resolve;
      });
  }

  say(word: string): void {
    const { words, delta } = this.#getRequest();
    words.push(word);
    delta?.(word);
  }

  finish(): void {
    const { finish } = this.#getRequest();
    this.#request = undefined;
    finish();
  }

  #getRequest(): OpenRequest {
    if (this.#request === undefined) throw new Error("the model has no open request");
    return this.#request;
  }
}

export function createTalkGraph(model: Model) {
  return defineGraph({
    name: "talk",
    state: defineState({ messages: channel.messages() }),
  })
    .nodes({
      ask: {
        run: async ({ messages }, runtime) => ({
          messages: [await runtime.model({ model, request: { messages, tools: [] } })],
        }),
      },
    })
    .edges({ [START]: "ask", ask: END });
}

/** Threads of a store, with a single model for all. */
export class Talk {
  readonly relay: Relay;
  readonly store: Store;
  readonly world: VirtualClock = virtualClock();
  readonly speaker = new Speaker();
  readonly #graph = createTalkGraph(this.speaker.model);
  #asked = 0;
  #result: Promise<unknown> = Promise.resolve();

  constructor(store: Store = memoryStore(), relay: Relay = memoryRelay()) {
    this.store = store;
    this.relay = relay;
  }

  /** Starts a run and waits for its model request. */
  async ask(thread: string, more: { readonly branch?: string } = {}): Promise<void> {
    const { store, world, relay } = this;
    this.#result = run(this.#graph, { store, thread, world, relay, input: this.#createInput(), ...more }).result;
    await Promise.race([this.speaker.waitForRequest(), this.#result]);
  }

  /** Ends the open request, and waits for the end of the run. */
  async finish(): Promise<void> {
    this.speaker.finish();
    await this.#result;
  }

  /** Runs a whole turn of one word. */
  async answer(thread: string, word = "word", more: { readonly branch?: string } = {}): Promise<void> {
    await this.ask(thread, more);
    this.speaker.say(word);
    await this.finish();
  }

  /** Puts a run into the queue of the thread. */
  async enqueue(thread: string): Promise<string> {
    const { store, world } = this;
    return (await submit(this.#graph, { store, world, thread, input: this.#createInput() })).run;
  }

  /** Waits for the model request of the queued run, which starts after the run before it. */
  async startQueued(): Promise<void> {
    await this.speaker.waitForRequest();
  }

  /** Makes a branch of the newest checkpoint. */
  async fork(thread: string): Promise<string> {
    const { store, world } = this;
    const head = await store.head(thread);
    if (head === undefined) throw new Error("the thread has no checkpoint");
    return fork(this.#graph, { store, world, thread, at: head.id, name: "other" });
  }

  #createInput(): { readonly messages: readonly Message[] } {
    this.#asked += 1;
    return { messages: [{ role: "user", id: `u${this.#asked}`, content: [{ type: "text", text: "Oslo?" }] }] };
  }
}

/** What a client shows: saved messages, then the open ones. */
export class MessageView {
  readonly #saved: string[] = [];
  readonly #open: Map<string, string> = new Map();

  show(event: ThreadFrame): void {
    if (event.type === "message.delta" && event.kind === "text") this.#append(event.messageId, event.text);
    else if (event.type === "message.completed") this.#open.set(event.message.id, getMessageText(event.message));
    else if (event.type === "snapshot") {
      this.#open.clear();
      for (const { id, text } of event.messages) this.#open.set(id, text);
    } else if (event.type === "step.committed" && event.source === "step") this.#save(event);
  }

  /** All shown messages, with a line per message. */
  get text(): string {
    return [...this.#saved, ...this.#open.values()].join("\n");
  }

  #append(id: string, text: string): void {
    this.#open.set(id, (this.#open.get(id) ?? "") + text);
  }

  #save({ changes }: Extract<RunEvent, { readonly type: "step.committed" }>): void {
    const delta = changes["messages"];
    const added: readonly Message[] = delta?.kind === "append" ? (delta.items as readonly Message[]) : [];
    for (const message of added.filter((one): one is AssistantMessage => one.role === "assistant")) {
      this.#open.delete(message.id);
      this.#saved.push(getMessageText(message));
    }
  }
}
