/**
 * One random conversation with real clients: people steer, stop, approve, refuse and interrupt, the process dies, providers
 * change in the middle. Whatever happens, no request may be one that its provider refuses.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { type Chance, chanceOf, modelThatRefusesBadTranscripts } from "@statewright/testing";
import {
  type Agent,
  aiModel,
  confirmTools,
  createAgent,
  defineTool,
  isStatewrightError,
  type MemoryStore,
  type Message,
  type Model,
  memoryStore,
  type OpenInterrupt,
  type RunEvent,
  type RunHandle,
  type RunResult,
  ToolError,
  toolRegistry,
} from "statewright";
import * as z from "zod";
import type { WireConversation, WireServer } from "./wire-server.ts";

/** What a conversation came to. */
export interface ConversationReport {
  readonly requests: number;
  /** How its runs ended, and what was done to them, each with how often. */
  readonly happened: Readonly<Record<string, number>>;
  readonly fates: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

/** What is done to a run at work. */
const deeds = ["nothing", "nothing", "nothing", "steer", "followUp", "abort", "crash", "drain"] as const;

/** A conversation may need so many lives and answers before it is given up. */
const mostRuns = 40;

/** Live through one conversation. */
export async function oneConversation(server: WireServer, seed: number): Promise<ConversationReport> {
  const chance = chanceOf(seed);
  const wire = server.conversation(seed);
  const talk = new Conversation(chance, wire);
  const turns = 1 + chance.below(4);
  for (let turn = 0; turn < turns; turn++) await talk.turn();
  return {
    requests: wire.requests,
    happened: talk.happened,
    fates: wire.fates,
    violations: [...talk.violations, ...wire.problems],
  };
}

type Talked = { readonly messages: readonly Message[] };
type End = RunResult<Talked> | { readonly status: "failed" | "crashed" };

class Conversation {
  readonly happened: Record<string, number> = {};
  readonly violations: string[] = [];
  readonly #chance: Chance;
  readonly #models: readonly Model[];
  readonly #settings: { readonly reasoning?: "low" };
  readonly #shape: object;
  readonly #root: MemoryStore = memoryStore();
  readonly #cut = new Set<string>();
  #store: MemoryStore;
  #known: readonly Message[] = [];
  #runs = 0;

  constructor(chance: Chance, wire: WireConversation) {
    this.#chance = chance;
    this.#models = modelsAt(wire).map(modelThatRefusesBadTranscripts);
    this.#settings = chance.share(0.3) ? { reasoning: "low" } : {};
    this.#shape = {
      strategy: chance.of(["parallel", "sequential"] as const),
      steering: chance.of(["skip-remaining", "finish-batch"] as const),
      inbox: chance.of(["one", "all"] as const),
      ...(chance.share(0.2) ? { maxToolCalls: 2 } : {}),
    };
    this.#store = this.#root.peer();
  }

  /** Say something, and go on until the agent has ended or people give up. */
  async turn(): Promise<void> {
    let end = await this.#live((agent) =>
      agent.run({ thread: "t", input: this.#words(), onBusy: this.#chance.of(["interrupt", "rollback"]) }),
    );
    for (let tries = 0; tries < 12 && this.#runs < mostRuns; tries++) {
      if (end.status === "done" || end.status === "cancelled") return;
      // What waits for a person may be left alone: something else is said in its place.
      if (end.status !== "crashed" && this.#chance.share(0.15)) return;
      const answers = "interrupts" in end ? this.#answers(end.interrupts) : {};
      end = await this.#live((agent) => agent.resume({ thread: "t", answers }));
    }
  }

  /** One life of a run: begin it, do something to it, and see how it ends. */
  async #live(begin: (agent: Agent) => RunHandle<Talked>): Promise<End> {
    this.#runs += 1;
    const store = this.#store;
    const deed = this.#chance.of(deeds);
    const at = this.#chance.below(24);
    const handle = begin(this.#agent());
    let seen = 0;
    let dead: (() => void) | undefined;
    const death = new Promise<End>((resolve) => {
      dead = () => resolve({ status: "crashed" });
    });
    handle.on((event) => {
      this.#watch(event);
      if (seen++ !== at || this.#store !== store) return;
      this.#count(deed);
      if (deed === "crash") {
        store.crash();
        this.#store = this.#root.peer();
        dead?.();
      } else this.#do(deed, handle);
    });
    const end = await Promise.race([death, this.#settled(handle, store)]);
    if (end.status === "done") this.#known = end.state.messages;
    this.#count(end.status);
    return end;
  }

  #do(deed: (typeof deeds)[number], handle: RunHandle<Talked>): void {
    if (deed === "abort") handle.cancel("enough");
    else if (deed === "drain") handle.drain("later");
    else if (deed === "steer" || deed === "followUp")
      handle[deed](this.#chance.share(0.5) ? "and now?" : [system("Be brief."), user(this.#chance, "hm")]).catch(
        refused,
      );
  }

  async #settled(handle: RunHandle<Talked>, store: MemoryStore): Promise<End> {
    try {
      return await handle.result;
    } catch (error) {
      const isExpected = isStatewrightError(error, "model_failed") || store !== this.#store;
      if (!isExpected) this.violations.push(`a run failed: ${error instanceof Error ? error.message : String(error)}`);
      return { status: "failed" };
    }
  }

  #watch(event: RunEvent): void {
    if (event.type === "message.completed" && event.message.finish === "length")
      for (const block of event.message.content) if (block.type === "call") this.#cut.add(block.id);
    if (event.type === "tool.started" && this.#cut.has(event.callId))
      this.violations.push(`the call ${event.callId} of a reply that was cut was run`);
  }

  #count(what: string): void {
    this.happened[what] = (this.happened[what] ?? 0) + 1;
  }

  #words(): string | readonly Message[] {
    const roll = this.#chance.below(10);
    if (roll < 6) return "Tell me about Oslo.";
    if (roll < 7) return [user(this.#chance, "What is this?", true)];
    // A client that sends its whole conversation with each turn.
    if (roll < 8) return [...this.#known, user(this.#chance, "And then?")];
    return [system("From now on speak Norwegian."), user(this.#chance, "Hei")];
  }

  #answers(questions: readonly OpenInterrupt[]): Readonly<Record<`${string}:${string}`, unknown>> {
    const answered = questions.filter(() => this.#chance.share(0.8));
    return Object.fromEntries(
      answered.map(({ id, key }) => [id, key === "in_doubt" ? { happened: this.#chance.share(0.5) } : this.#verdict()]),
    );
  }

  #verdict(): unknown {
    return this.#chance.of([
      true,
      false,
      { approved: false, reason: "not now" },
      { approved: true, args: { text: "less" } },
      { respond: "done by hand" },
    ]);
  }

  /** The agent as a new process makes it, with whichever models it has. */
  #agent(): Agent {
    const first = this.#chance.of(this.#models);
    const others = this.#models.filter((model) => model !== first && this.#chance.share(0.3));
    return createAgent({
      name: "talker",
      model: [first, ...others],
      instructions: "You are tested.",
      tools: toolRegistry(tools),
      middleware: [confirmTools()],
      settings: this.#settings,
      store: this.#store,
      retry: { attempts: 3, initialMs: 1, jitter: 0 },
      ...this.#shape,
    });
  }
}

/** Words for a run that is over are refused: nobody hears them, which harms nothing. */
function refused(): void {}

function modelsAt({ baseUrl }: WireConversation): readonly Model[] {
  const apiKey = "not-a-key";
  const claude = createAnthropic({ baseURL: baseUrl("anthropic"), apiKey });
  const chat = createOpenAI({ baseURL: baseUrl("chat"), apiKey });
  const responses = createOpenAI({ baseURL: baseUrl("responses"), apiKey });
  const google = createGoogleGenerativeAI({ baseURL: baseUrl("google"), apiKey });
  return [
    claude("claude-sonnet-4-5"),
    claude("claude-opus-4-5"),
    chat.chat("gpt-4o"),
    responses("gpt-5"),
    responses("gpt-4.1"),
    google("gemini-3-pro-preview"),
  ].map((model) => aiModel(model));
}

const input = z.object({ text: z.string() });
const picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const tools = [
  defineTool({
    name: "look",
    description: "Look at something.",
    input,
    effect: "pure",
    run: ({ text }) =>
      text.length % 3 === 0
        ? {
            content: [
              { type: "text", text },
              { type: "image", mimeType: "image/png", data: picture },
            ],
          }
        : text,
  }),
  defineTool({
    name: "order",
    description: "Order something.",
    input,
    safety: { confirm: "always" },
    run: ({ text }) => ({ ordered: text }),
  }),
  defineTool({
    name: "fail",
    description: "Fails.",
    input,
    effect: "pure",
    run: ({ text }) => {
      throw ToolError.unavailable(`no ${text} today`);
    },
  }),
  defineTool({
    name: "wait",
    description: "Waits.",
    input,
    effect: "idempotent",
    run: async (_args, { signal }) => {
      for (let each = 0; each < 5; each++) {
        await new Promise(setImmediate);
        signal.throwIfAborted();
      }
      return "";
    },
  }),
];

function system(content: string): Message {
  return { role: "system", id: `system_${content.length}`, content };
}

function user(chance: Chance, text: string, isShowing = false): Message {
  const words = { type: "text" as const, text };
  const shown = { type: "image" as const, mimeType: "image/png", data: picture };
  return { role: "user", id: `user_${chance.below(1_000_000_000)}`, content: isShowing ? [words, shown] : [words] };
}
