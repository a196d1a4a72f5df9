/** Model interface, implemented by adapters and scripted models, and messages as a request and a reply have them. */
import type { JsonObject } from "../base/json.ts";
import { listOptionNames } from "../base/options.ts";
import { toWellFormedSaved } from "../base/well-formed.ts";
import type { AssistantMessage, Message, ProviderData, ToolCallBlock, ToolMessage, Usage } from "./message.ts";
import type { ModelFailureKind } from "./model-failure.ts";

/** A tool as advertised to the model: only the arguments that the model may choose. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments; the root is an object. */
  readonly inputSchema: JsonObject;
  /** Enforcement of the schema by the provider; undefined for the provider's own default. */
  readonly strict?: boolean | undefined;
  /** Provider-specific data of the tool, such as the end of the prompt cache. */
  readonly provider?: ProviderData | undefined;
}

/**
 * A tool defined by a provider, such as its web search. The provider runs the tool and returns the results in the
 * reply. A provider tool with the name of a tool of the request is run by that tool; the provider knows the argument
 * schema.
 */
export interface ProviderTool {
  /** Name of the tool in the model's calls. */
  readonly name: string;
  /** Provider's id of the tool, such as `anthropic.web_search_20250305`. */
  readonly id: string;
  /** Provider-specific settings. */
  readonly args: JsonObject;
}

/** Structured output: JSON by a schema, enforced by the provider if supported. */
export interface ModelOutput {
  /** JSON Schema of the answer. */
  readonly schema: JsonObject;
  /** Name of the schema for the provider: letters, digits, `_` and `-`. */
  readonly name?: string | undefined;
  readonly description?: string | undefined;
}

/** Reasoning effort before the answer. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/** Tool choice of a request; `Names` are the names of tools that can be forced. */
export type ToolChoice<Names extends string = string> = "auto" | "none" | "required" | { readonly tool: Names };

/** A request to a model. */
export interface ModelRequest {
  readonly instructions?: string | undefined;
  readonly messages: readonly Message[];
  readonly tools: readonly ModelTool[];
  readonly toolChoice?: ToolChoice | undefined;
  readonly providerTools?: readonly ProviderTool[] | undefined;
  readonly output?: ModelOutput | undefined;
  readonly reasoning?: ReasoningEffort | undefined;
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly presencePenalty?: number | undefined;
  readonly frequencyPenalty?: number | undefined;
  readonly stopSequences?: readonly string[] | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly seed?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly providerOptions?: JsonObject | undefined;
}

/** Settings of a model request, without its content. */
export type ModelSettings = Omit<
  ModelRequest,
  "instructions" | "messages" | "tools" | "toolChoice" | "output" | "providerTools"
>;

/** Names of all model settings. */
export const settingNames: readonly string[] = listOptionNames<ModelSettings>({
  reasoning: true,
  temperature: true,
  topP: true,
  topK: true,
  presencePenalty: true,
  frequencyPenalty: true,
  stopSequences: true,
  maxOutputTokens: true,
  seed: true,
  headers: true,
  providerOptions: true,
});

/** A streamed part of an answer. */
export type ModelDelta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly argsText: string };

/** Answer of a model: an assistant message without its id; the run assigns the id. */
export type ModelReply = Omit<AssistantMessage, "id" | "role" | "offered" | "ended">;

/** Options of a model call. `delta` receives streamed parts synchronously; undefined without listeners. */
export interface ModelCallOptions {
  /** Aborts the model call. */
  readonly signal: AbortSignal;
  /** Receives each part of a streamed answer. */
  readonly delta?: ((delta: ModelDelta) => void) | undefined;
  /**
   * Callback for activity without visible content: a `part`, or a keep-alive `ping`. Undefined without an idle
   * timeout.
   */
  readonly alive?: ((sign: "part" | "ping") => void) | undefined;
  /** Callback for request settings that the provider ignored. */
  readonly warn?: ((warning: string) => void) | undefined;
}

/**
 * A language model. `respond` answers a request. Rejects with a `StatewrightError` of code `model_failed` (its
 * details tell if a retry may help) or with an error of the client library.
 */
export interface Model {
  /** Provider's id of the model, such as `anthropic/claude-sonnet-4-5`. */
  readonly id: string;
  /** Display name. Not part of requests. */
  readonly name?: string | undefined;
  /** Requests a single answer. Rejects with an error that says whether a retry can succeed. */
  readonly respond: (request: ModelRequest, options: ModelCallOptions) => Promise<ModelReply>;
  /** False for a model without image input: images are replaced by a line of text. */
  readonly images?: boolean | undefined;
  /** True when the provider enforces the schema in `output` of a request. */
  readonly structuredOutput?: boolean | undefined;
  /**
   * Tool names in the script of a scripted model; type-level only, so that a script with an unknown tool does not
   * compile.
   */
  readonly script?: unknown;
}

/** Returns true if a value is a model. A string, such as a model name, is not. */
export function isModel(value: unknown): value is Model {
  if (typeof value !== "object" && typeof value !== "function") return false;
  return value !== null && "respond" in value && typeof value.respond === "function";
}

/** `details` of a `model_failed` error. */
export interface ModelFailure {
  readonly retryable: boolean;
  /** Failure kind; derived from `status` when undefined. */
  readonly kind?: ModelFailureKind;
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** Known usage of the failed request. */
  readonly usage?: Usage;
}

/**
 * Returns the content with the raw arguments of each call as text. Adapters written by hand may give another value,
 * and null for calls without raw arguments. Returns the same list when nothing changes.
 */
export function normalizeRawArgs(content: AssistantMessage["content"]): AssistantMessage["content"] {
  if (!content.some((block) => block.type === "call" && "raw" in block && typeof block.raw !== "string"))
    return content;
  return content.map((block) => {
    if (block.type !== "call" || typeof block.raw === "string") return block;
    const { raw, ...call }: ToolCallBlock & { readonly raw?: unknown } = block;
    return raw === undefined || raw === null ? call : { ...call, raw: JSON.stringify(raw) ?? typeof raw };
  });
}

const sentCopies: WeakMap<Message, Message> = new WeakMap();

/**
 * Returns a message as a request has it: without run notes (advertised tools, fallback model, failed attempts, usage
 * of a call, the end of the agent), and without lone surrogates, which providers refuse. Returns the same message if
 * nothing changes. Memoized for frozen messages, so that an adapter sees the same message in each request.
 */
export function toSentMessage(message: Message): Message {
  if (!hasNote(message)) return toWellFormedSaved(message);
  const known = sentCopies.get(message);
  if (known !== undefined) return known;
  const copy = Object.freeze(toWellFormedSaved(removeNote(message)));
  if (Object.isFrozen(message)) sentCopies.set(message, copy);
  return copy;
}

/** Returns true if a message has a run note. */
function hasNote(message: Message): message is AssistantMessage | ToolMessage {
  if (message.role === "assistant") {
    const { offered, ended, answeredBy, failedAttempts } = message;
    return offered !== undefined || ended !== undefined || answeredBy !== undefined || failedAttempts !== undefined;
  }
  return message.role === "tool" && (message.terminate !== undefined || message.usage !== undefined);
}

function removeNote(noted: AssistantMessage | ToolMessage): Message {
  if (noted.role === "tool") {
    const { terminate: _terminate, usage: _usage, ...message } = noted;
    return message;
  }
  const { offered: _offered, ended: _ended, answeredBy: _answeredBy, failedAttempts: _lost, ...message } = noted;
  return message;
}
