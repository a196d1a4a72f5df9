/** The model contract: what an adapter or a scripted model implements. */
import type { JsonObject } from "../base/json.ts";
import type { AssistantMessage, Message, ProviderData, Usage } from "./message.ts";
import type { ModelFailureKind } from "./model-failure.ts";

/** A tool as the model sees it: arguments that the model may choose, nothing else. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, an object at the top. */
  readonly inputSchema: JsonObject;
  /** What a provider is told about the tool, such as where its prompt cache ends. */
  readonly provider?: ProviderData | undefined;
}

/**
 * A tool that a provider defines, such as its web search. The provider runs it and its results stand with the reply; one
 * that has the name of a tool of the request is answered by that tool, and the provider knows its arguments already.
 */
export interface ProviderTool {
  /** The name under which the model's calls of it are told. */
  readonly name: string;
  /** The provider's id of it, such as `anthropic.web_search_20250305`. */
  readonly id: string;
  /** Its settings, as the provider wants them. */
  readonly args: JsonObject;
}

/** What the answer must be: JSON by a schema, kept by the provider itself where it can. */
export interface ModelOutput {
  /** JSON Schema of the answer. */
  readonly schema: JsonObject;
  /** A name for the provider, in letters, digits, `_` and `-`. */
  readonly name?: string | undefined;
  readonly description?: string | undefined;
}

/** How much a model thinks before it answers. */
export type ReasoningEffort = "none" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/** How the model may choose tools; `Names` are those that it may have to call. */
export type ToolChoice<Names extends string = string> = "auto" | "none" | "required" | { readonly tool: Names };

/** One request to a model. */
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

/** A part of an answer while it streams. */
export type ModelDelta =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly argsText: string };

/** What a model answers: an assistant message without its id, which the run gives. */
export type ModelReply = Omit<AssistantMessage, "id" | "role" | "offered" | "ended">;

/** What a model call gets besides the request. `delta` is cheap, synchronous, and absent when nobody listens. */
export interface ModelCallOptions {
  readonly signal: AbortSignal;
  readonly delta?: ((delta: ModelDelta) => void) | undefined;
  /** Told of a part that shows nothing, and of a `ping` that says only that the other side is there; absent when nobody watches. */
  readonly alive?: ((sign: "part" | "ping") => void) | undefined;
  /** Told what of the request the provider did not heed, such as a setting that it does not have. */
  readonly warn?: ((warning: string) => void) | undefined;
}

/**
 * A language model. `respond` answers one request; it rejects with a `StatewrightError` of code `model_failed` (whose
 * details say whether a retry may help) or with whatever its client throws.
 */
export interface Model {
  /** The provider's id of the model, such as `anthropic/claude-sonnet-4-5`. */
  readonly id: string;
  /** What people are shown in place of the id. No request holds it. */
  readonly name?: string | undefined;
  readonly respond: (request: ModelRequest, options: ModelCallOptions) => Promise<ModelReply>;
  /** False for a model that cannot see: it reads in a line that there was an image. */
  readonly images?: boolean | undefined;
  /** True where the provider keeps the schema in `output` of a request itself, false where it does not. */
  readonly structuredOutput?: boolean | undefined;
  /** A scripted model carries the names of the tools that its script calls, so that a wrong script does not type-check. */
  readonly script?: unknown;
}

/** Tell whether a value is a model that can be asked: a text, such as the name of one, is none. */
export function isModel(value: unknown): value is Model {
  if (typeof value !== "object" && typeof value !== "function") return false;
  return value !== null && "respond" in value && typeof value.respond === "function";
}

/** What `details` of a `model_failed` error hold. */
export interface ModelFailure {
  readonly retryable: boolean;
  /** What went wrong; without it the status decides. */
  readonly kind?: ModelFailureKind;
  readonly status?: number;
  readonly retryAfterMs?: number;
  /** What the failed request is known to have cost. */
  readonly usage?: Usage;
}
