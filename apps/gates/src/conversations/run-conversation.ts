/**
 * Random conversation with real clients: steering, cancellation, approval, refusal, interrupts, crashes and changes
 * of the provider. No request may be invalid for its provider.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { type Chance, createChance, rejectInvalidTranscripts } from "@statewright/testing";
import {
  type Agent,
  createAgent,
  defineTool,
  type ImageBlock,
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
import { aiModel } from "statewright/adapter";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";
import type { WireConversation, WireServer } from "./wire-server.ts";

/** Result of a conversation. */
export interface ConversationReport {
  readonly requests: number;
  /** Counts of run ends and of actions on runs. */
  readonly happened: Readonly<Record<string, number>>;
  /** Counts of replies of the server, by kind. */
  readonly replies: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

/** Actions on an active run. */
const actions = ["nothing", "nothing", "nothing", "steer", "followUp", "abort", "crash", "drain"] as const;

/** Maximum number of runs and resumes per conversation. */
const maxRuns = 40;

/** Runs a conversation. */
export async function runConversation(server: WireServer, seed: number): Promise<ConversationReport> {
  const chance = createChance(seed);
  const wire = server.openConversation(seed);
  const conversation = new Conversation(chance, wire);
  const turns = 1 + chance.getInteger(4);
  for (let turn = 0; turn < turns; turn++) await conversation.runTurn();
  return {
    requests: wire.requests,
    happened: conversation.happened,
    replies: wire.replies,
    violations: [...conversation.violations, ...wire.problems],
  };
}

type TranscriptState = { readonly messages: readonly Message[] };
type RunEnd = RunResult<TranscriptState> | { readonly status: "failed" | "crashed" };

class Conversation {
  readonly happened: Record<string, number> = {};
  readonly violations: string[] = [];
  readonly #chance: Chance;
  readonly #models: readonly Model[];
  readonly #settings: { readonly reasoning?: "low" };
  readonly #agentOptions: object;
  readonly #firstStore: MemoryStore = memoryStore();
  readonly #truncatedCalls = new Set<string>();
  #store: MemoryStore;
  #knownMessages: readonly Message[] = [];
  #runs = 0;

  constructor(chance: Chance, wire: WireConversation) {
    this.#chance = chance;
    this.#models = createModels(wire).map(rejectInvalidTranscripts);
    this.#settings = chance.flip(0.3) ? { reasoning: "low" } : {};
    this.#agentOptions = {
      strategy: chance.pick(["parallel", "sequential"] as const),
      steering: chance.pick(["skip-remaining", "finish-batch"] as const),
      inbox: chance.pick(["one", "all"] as const),
      ...(chance.flip(0.2) ? { maxToolCalls: 2 } : {}),
    };
    this.#store = this.#firstStore.peer();
  }

  /** Sends an input and resumes until the run ends or the attempts are used up. */
  async runTurn(): Promise<void> {
    let end = await this.#executeRun((agent) =>
      agent.run({ thread: "t", input: this.#createInput(), onBusy: this.#chance.pick(["cancel", "rollback"]) }),
    );
    for (let tries = 0; tries < 12 && this.#runs < maxRuns; tries++) {
      if (end.status === "done" || end.status === "cancelled") return;
      // A waiting run may stay unanswered: the next turn sends another input instead.
      if (end.status !== "crashed" && this.#chance.flip(0.15)) return;
      const answers = "interrupts" in end ? this.#createAnswers(end.interrupts) : {};
      end = await this.#executeRun((agent) => agent.resume({ thread: "t", answers }));
    }
  }

  /** Starts or resumes a run, performs an action on the run, and returns the end of the run. */
  async #executeRun(start: (agent: Agent) => RunHandle<TranscriptState>): Promise<RunEnd> {
    this.#runs += 1;
    const store = this.#store;
    const action = this.#chance.pick(actions);
    const actionIndex = this.#chance.getInteger(24);
    const handle = start(this.#createAgent());
    let eventCount = 0;
    let resolveCrash: (() => void) | undefined;
    const crashed = new Promise<RunEnd>((resolve) => {
      resolveCrash = () => resolve({ status: "crashed" });
    });
    handle.on((event) => {
      this.#checkEvent(event);
      if (eventCount++ !== actionIndex || this.#store !== store) return;
      this.#countLabel(action);
      if (action === "crash") {
        store.crash();
        this.#store = this.#firstStore.peer();
        resolveCrash?.();
      } else this.#performAction(action, handle);
    });
    const end = await Promise.race([crashed, this.#awaitEnd(handle, store)]);
    if (end.status === "done") this.#knownMessages = end.state.messages;
    this.#countLabel(end.status);
    return end;
  }

  #performAction(action: (typeof actions)[number], handle: RunHandle<TranscriptState>): void {
    if (action === "abort") handle.cancel("enough");
    else if (action === "drain") handle.drain("later");
    else if (action === "steer" || action === "followUp")
      handle[action](
        this.#chance.flip(0.5) ? "and now?" : [createSystemMessage("Be brief."), createUserMessage(this.#chance, "hm")],
      ).catch(ignoreRejection);
  }

  async #awaitEnd(handle: RunHandle<TranscriptState>, store: MemoryStore): Promise<RunEnd> {
    try {
      return await handle.result;
    } catch (error) {
      const isExpected = isStatewrightError(error, "model_failed") || store !== this.#store;
      if (!isExpected) this.violations.push(`a run failed: ${error instanceof Error ? error.message : String(error)}`);
      return { status: "failed" };
    }
  }

  #checkEvent(event: RunEvent): void {
    if (event.type === "message.completed" && event.message.finish === "length")
      for (const block of event.message.content) if (block.type === "call") this.#truncatedCalls.add(block.id);
    if (event.type === "tool.started" && this.#truncatedCalls.has(event.callId))
      this.violations.push(`the call ${event.callId} of a truncated reply was run`);
  }

  #countLabel(label: string): void {
    this.happened[label] = (this.happened[label] ?? 0) + 1;
  }

  #createInput(): string | readonly Message[] {
    const roll = this.#chance.getInteger(10);
    if (roll < 6) return "Tell me about Oslo.";
    if (roll < 7) return [createUserMessage(this.#chance, "What is this?", [imageBlock])];
    // Client that sends its whole conversation with each turn.
    if (roll < 8) return [...this.#knownMessages, createUserMessage(this.#chance, "And then?")];
    return [createSystemMessage("From now on speak Norwegian."), createUserMessage(this.#chance, "Hei")];
  }

  #createAnswers(interrupts: readonly OpenInterrupt[]): Readonly<Record<`${string}:${string}`, unknown>> {
    const answered = interrupts.filter(() => this.#chance.flip(0.8));
    return Object.fromEntries(
      answered.map(({ id, key }) => [
        id,
        key === "in_doubt" ? { happened: this.#chance.flip(0.5) } : this.#createVerdict(),
      ]),
    );
  }

  #createVerdict(): unknown {
    return this.#chance.pick([
      true,
      false,
      { approved: false, reason: "not now" },
      { approved: true, args: { text: "less" } },
      { respond: "done by hand" },
    ]);
  }

  /** Creates the agent as a new process does, with a random choice of models. */
  #createAgent(): Agent {
    const first = this.#chance.pick(this.#models);
    const others = this.#models.filter((model) => model !== first && this.#chance.flip(0.3));
    return createAgent({
      name: "talker",
      model: [first, ...others],
      instructions: "You are tested.",
      tools: toolRegistry(tools),
      middleware: [confirmTools()],
      settings: this.#settings,
      store: this.#store,
      retry: { attempts: 3, initialMs: 1, jitter: 0 },
      ...this.#agentOptions,
    });
  }
}

/** An action on a finished run is rejected; the rejection is expected. */
function ignoreRejection(): void {}

function createModels({ baseUrl }: WireConversation): readonly Model[] {
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

function createSystemMessage(content: string): Message {
  return { role: "system", id: `system_${content.length}`, content };
}

const imageBlock: ImageBlock = { type: "image", mimeType: "image/png", data: picture };

function createUserMessage(chance: Chance, text: string, attachments: readonly ImageBlock[] = []): Message {
  return {
    role: "user",
    id: `user_${chance.getInteger(1_000_000_000)}`,
    content: [{ type: "text", text }, ...attachments],
  };
}
