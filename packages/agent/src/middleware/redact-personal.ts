/** Middleware that redacts personal data in model requests, answers and tool results. */
import {
  type AssistantMessage,
  type ContentBlock,
  defineMiddleware,
  type Json,
  type Message,
  type Middleware,
  type ModelDelta,
  type ModelHookRuntime,
  type ModelReply,
  type ModelRequest,
  type ToolCallBlock,
  type ToolResult,
  type UserMessage,
} from "@statewright/core";
import { cleanBlock, cleanData, cleanOutput, cleanResult, type TextTransform } from "../output/clean-result.ts";
import { isFinalCall } from "../output/is-final-answer.ts";
import { cleanAnswer, isLikelyJson } from "../personal/clean-answer.ts";
import { createFindings, PersonalRedactor } from "../personal/personal-redactor.ts";
import {
  type ParsedRedactOptions,
  parseRedactOptions,
  type RedactPersonalOptions,
} from "../personal/redact-options.ts";
import { createStreamRedactor } from "../personal/redact-stream.ts";
import { getMessages } from "./conversation-calls.ts";

/**
 * Redacts model requests, answers and tool results. State keeps user messages unchanged; answers and results are
 * saved and streamed redacted. Arguments of tool calls stay unchanged, because a tool that sends mail needs the
 * address; arguments of the final call are the answer and are redacted. JSON answers do not stream. Applies to
 * sub-agents too.
 */
export function redactPersonal(options: RedactPersonalOptions = {}): Middleware {
  const parsedOptions = parseRedactOptions(options);
  const { input, output, toolResults, detectors } = parsedOptions;
  const redactor = new PersonalRedactor(parsedOptions);
  const conversation = new ConversationRedactor(parsedOptions, redactor);
  return defineMiddleware({
    name: "redactPersonal",
    required: true,
    inherited: true,
    showMessages: (messages) => conversation.redactMessages(messages),
    beforeModel: async (request, runtime) =>
      input || toolResults ? conversation.redactRequest(request, runtime) : undefined,
    ...(output
      ? {
          onModelDelta: () => (detectors.length > 0 ? dropAnswerDelta : createDeltaFilter(redactor)),
          afterModel: async (reply, { end }) => {
            const { value, findings } = await redactor.redact((clean) => cleanReply(clean, reply));
            const blocked = [...findings.blocked];
            if (blocked.length > 0)
              return end(formatWithheld(blocked), { by: "guardrail", reason: formatReason(blocked) });
            return value;
          },
        }
      : {}),
    ...(toolResults
      ? {
          onToolUpdate: ({ partial }) => {
            const findings = createFindings();
            const cleaned = cleanOutput(redactor.createTransform(findings), partial);
            return findings.blocked.size > 0 ? null : cleaned;
          },
          afterTool: async ({ result }) => {
            const { value, findings } = await redactor.redact((clean) => cleanResult(clean, result));
            return findings.blocked.size > 0 ? createWithheldResult(result, [...findings.blocked]) : value;
          },
        }
      : {}),
  } satisfies Middleware);
}

type ToolMessage = Message & { readonly role: "tool" };

/** Redacted message, with the kinds of blocked data in it. */
interface RedactedMessage {
  readonly message: Message;
  readonly blocked: readonly string[];
}

/** Redacts user and tool messages, each at most once: an unchanged message keeps its object identity. */
class ConversationRedactor {
  readonly #options: Pick<ParsedRedactOptions, "input" | "toolResults">;
  readonly #redactor: PersonalRedactor;
  readonly #cache: WeakMap<Message, RedactedMessage> = new WeakMap();

  constructor(options: Pick<ParsedRedactOptions, "input" | "toolResults">, redactor: PersonalRedactor) {
    this.#options = options;
    this.#redactor = redactor;
  }

  async redactMessages(messages: readonly Message[]): Promise<Message[]> {
    const redacted: Message[] = [];
    for (const message of messages)
      redacted.push(this.#shouldRedact(message) ? (await this.#redactMessage(message)).message : message);
    return redacted;
  }

  /** Ends the agent when a new user message contains blocked data; undefined for a request without personal data. */
  async redactRequest(
    request: ModelRequest,
    runtime: ModelHookRuntime,
  ): Promise<ModelRequest | ReturnType<ModelHookRuntime["end"]> | undefined> {
    const newIds = listNewMessageIds(getMessages(runtime.state));
    const messages: Message[] = [];
    for (const message of request.messages) {
      if (!this.#shouldRedact(message)) {
        messages.push(message);
        continue;
      }
      const cleaned = await this.#redactMessage(message);
      if (message.role === "user" && cleaned.blocked.length > 0 && newIds.has(message.id))
        return runtime.end(formatRefusal(cleaned.blocked), { by: "guardrail", reason: formatReason(cleaned.blocked) });
      messages.push(cleaned.message);
    }
    const isSame = messages.every((message, index) => message === request.messages[index]);
    return isSame ? undefined : { ...request, messages };
  }

  #shouldRedact(message: Message): message is UserMessage | ToolMessage {
    const { input, toolResults } = this.#options;
    return (message.role === "user" && input) || (message.role === "tool" && toolResults);
  }

  async #redactMessage(message: UserMessage | ToolMessage): Promise<RedactedMessage> {
    const cached = this.#cache.get(message);
    if (cached !== undefined) return cached;
    const { value, findings } = await this.#redactor.redact((clean) => cleanMessage(clean, message));
    const result = { message: value, blocked: [...findings.blocked] };
    this.#cache.set(message, result);
    return result;
  }
}

/** Returns the ids of the messages after the last answer of the model. */
function listNewMessageIds(messages: readonly Message[]): ReadonlySet<string> {
  return new Set(messages.slice(messages.findLastIndex(({ role }) => role === "assistant") + 1).map(({ id }) => id));
}

function dropAnswerDelta(delta: ModelDelta): ModelDelta | null {
  return delta.type === "call" && !isFinalCall(delta) ? delta : null;
}

/**
 * Creates the redactor of a streaming answer. Stops streaming after a finding that is hashed or blocked, until the
 * answer is complete.
 */
function createDeltaFilter(redactor: PersonalRedactor): (delta: ModelDelta) => ModelDelta | null {
  const findings = createFindings();
  const clean = redactor.createTransform(findings);
  const streams = { text: createStreamRedactor(clean), reasoning: createStreamRedactor(clean) };
  let start = "";
  let isJson: boolean | undefined;
  return (delta) => {
    if (delta.type === "call") return dropAnswerDelta(delta);
    let piece = delta.text;
    if (delta.type === "text" && isJson !== false) {
      start += piece;
      isJson ??= isLikelyJson(start);
      if (isJson !== false) return null;
      piece = start;
    }
    const text = streams[delta.type](piece);
    return text === "" || findings.hashed.size + findings.blocked.size > 0 ? null : { ...delta, text };
  };
}

function cleanMessage(clean: TextTransform, message: Message): Message {
  if (message.role !== "user" && message.role !== "tool") return message;
  const content = message.content.map((block): ContentBlock => {
    const cleaned = cleanBlock(clean, block);
    return JSON.stringify(cleaned) === JSON.stringify(block) ? block : cleaned;
  });
  return content.every((block, index) => block === message.content[index])
    ? message
    : ({ ...message, content } as Message);
}

/** Redacts a model reply. Drops signed reasoning with personal data, because its text cannot be changed. */
function cleanReply(clean: TextTransform, reply: ModelReply): ModelReply {
  const content = reply.content.flatMap((block): AssistantMessage["content"] => {
    if (isFinalCall(block)) return [cleanFinal(clean, block)];
    if (block.type !== "text" && block.type !== "reasoning") return [block];
    const text = block.type === "text" ? cleanAnswer(clean, block.text) : clean(block.text);
    if (text === block.text) return [block];
    return block.type === "reasoning" && block.provider !== undefined ? [] : [{ ...block, text }];
  });
  const isSame =
    content.length === reply.content.length && content.every((block, index) => block === reply.content[index]);
  return isSame ? reply : { ...reply, content };
}

/** Redacts structured output in the arguments of the final call. */
function cleanFinal(clean: TextTransform, block: ToolCallBlock): ToolCallBlock {
  const args = cleanData(clean, block.args) as Json;
  const raw = block.raw === undefined ? undefined : clean(block.raw);
  if (raw === block.raw && JSON.stringify(args) === JSON.stringify(block.args)) return block;
  return { ...block, args, ...(raw === undefined ? {} : { raw }) };
}

function createWithheldResult(
  { callId, name, attempts, elapsedMs, command, usage }: ToolResult,
  blocked: readonly string[],
): ToolResult {
  const message = `The result was withheld: it contains personal data (${blocked.join(", ")}).`;
  return {
    callId,
    name,
    content: [{ type: "text", text: message }],
    isError: true,
    error: { kind: "failed", disposition: "repair", message },
    attempts,
    elapsedMs,
    ...(command === undefined ? {} : { command }),
    ...(usage === undefined ? {} : { usage }),
  };
}

function formatRefusal(blocked: readonly string[]): string {
  return `Your message contains personal data (${blocked.join(", ")}). Please rephrase it without them.`;
}

function formatWithheld(blocked: readonly string[]): string {
  return `The answer was withheld: it contains personal data (${blocked.join(", ")}).`;
}

function formatReason(blocked: readonly string[]): string {
  return `personal data: ${blocked.join(", ")}`;
}
