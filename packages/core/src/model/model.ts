/** The model contract: what an adapter or a scripted model implements. */
import type { JsonObject } from "../base/json.ts";
import type { AssistantMessage, Message } from "./message.ts";

/** A tool as the model sees it: arguments that the model may choose, nothing else. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, an object at the top. */
  readonly inputSchema: JsonObject;
}

/** How the model may choose tools. */
export type ToolChoice = "auto" | "none" | "required" | { readonly tool: string };

/** One request to a model. */
export interface ModelRequest {
  readonly instructions?: string | undefined;
  readonly messages: readonly Message[];
  readonly tools: readonly ModelTool[];
  readonly toolChoice?: ToolChoice | undefined;
  readonly temperature?: number | undefined;
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
export type ModelReply = Omit<AssistantMessage, "id" | "role" | "offered">;

/** What a model call gets besides the request. `delta` is cheap, synchronous, and absent when nobody listens. */
export interface ModelCallOptions {
  readonly signal: AbortSignal;
  readonly delta?: ((delta: ModelDelta) => void) | undefined;
}

/**
 * A language model. `respond` answers one request; it rejects with a `StatewrightError` of code `model_failed` (whose
 * details say whether a retry may help) or with whatever its client throws.
 */
export interface Model {
  /** The provider's id of the model, such as `anthropic/claude-sonnet-4-5`. */
  readonly id: string;
  readonly respond: (request: ModelRequest, options: ModelCallOptions) => Promise<ModelReply>;
  /** False for a model that cannot see: it reads in a line that there was an image. */
  readonly images?: boolean | undefined;
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
  readonly status?: number;
  readonly retryAfterMs?: number;
}
