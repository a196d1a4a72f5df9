/** Adapts an AI SDK language model to `Model`: a stream and a reply per request. */

import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import type {
  LanguageModel,
  Message,
  Model,
  ModelCallOptions,
  ModelReply,
  ModelRequest,
  StatewrightError,
} from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { toCallSettings, toCallTools } from "./call-settings.ts";
import { findClientAddress, listClientSecrets } from "./client-config.ts";
import { type ClientRules, getClientRules } from "./client-rules.ts";
import { v2, v3, v4 } from "./dialect.ts";
import { createBrokenReplyError, describeOtherContent, findUnknownEvent, toModelError } from "./failure.ts";
import { createUrlPredicate } from "./media.ts";
import { toPrompt } from "./prompt.ts";
import { isObject, omitUndefined } from "./provider-json.ts";
import { ReplyBuilder } from "./reply.ts";
import type { StreamPart } from "./stream-part.ts";
import { isJsonResponse, toStreamParts } from "./unstreamed-reply.ts";

/** Facts about a model for `aiModel`, for which the AI SDK has no field. */
export interface AiModelOptions {
  /** Display name; default: the model id. */
  readonly name?: string;
  /** False for a model without image input: images in the prompt become a line of text. */
  readonly images?: boolean;
  /** True if the provider enforces an output schema itself. Default: true for known providers, otherwise undefined. */
  readonly structuredOutput?: boolean;
}

/**
 * Returns a `Model` for any AI SDK language model.
 *
 * ```ts
 * const model = aiModel(anthropic("claude-sonnet-4-5"));
 * ```
 *
 * `respond` rejects with `model_failed` (details: {@link ModelFailure}), with `missing_secret` if the client finds no
 * API key, and with the reason of the signal on abort. Throws `invalid_option` for a specification other than V2, V3
 * and V4.
 */
export function aiModel(model: LanguageModel, options: AiModelOptions = {}): Model {
  const id = `${model.provider.split(".")[0]}/${model.modelId}`;
  checkSpecification(model.specificationVersion, id);
  const { name, images, structuredOutput = hasStructuredOutput(model) } = options;
  return {
    id,
    ...omitUndefined({ name, images, structuredOutput }),
    respond: (request, at) => respond(model as KnownModel, id, request, at),
  };
}

function checkSpecification(version: string, id: string): void {
  if (["v2", "v3", "v4"].includes(version)) return;
  throw invalidOption({
    where: "aiModel",
    expected: 'a language model of specification "v2", "v3" or "v4"',
    found: `${JSON.stringify(version)} from "${id}"`,
    fix: "Install a version of the provider package with one of these specifications",
  });
}

function hasStructuredOutput(model: LanguageModel): boolean | undefined {
  const { supportsStructuredOutputs: declared } = model as { supportsStructuredOutputs?: unknown };
  return typeof declared === "boolean" ? declared : canEnforceSchemas(model.provider);
}

/** Returns true if the provider of a client is known to enforce output schemas; undefined for unlisted clients. */
export function canEnforceSchemas(client: string): true | undefined {
  return getClientRules(client).family === undefined ? undefined : true;
}

type KnownModel = LanguageModelV2 | LanguageModelV3 | LanguageModelV4;

async function respond(
  model: KnownModel,
  id: string,
  request: ModelRequest,
  options: ModelCallOptions,
): Promise<ModelReply> {
  const { signal } = options;
  signal.throwIfAborted();
  const unstreamed = unstreamedModels.has(model);
  const call = new WireCall(model, id, request, options);
  const result = await call.ask(unstreamed ? "whole" : "stream");
  if (!("failure" in result)) return result.reply;
  if (unstreamed || !call.isUnreadableJson()) throw result.failure;
  const whole = await new WireCall(model, id, request, options).ask("whole");
  if ("failure" in whole) throw result.failure;
  unstreamedModels.add(model);
  return whole.reply;
}

/** Models whose server answers with JSON instead of a stream of events. */
const unstreamedModels: WeakSet<KnownModel> = new WeakSet();

type CallResult = { readonly reply: ModelReply } | { readonly failure: unknown };

/** One request of a model, with the continuations of its paused replies. */
class WireCall {
  readonly #model: KnownModel;
  readonly #id: string;
  readonly #request: ModelRequest;
  readonly #options: ModelCallOptions;
  readonly #reply: ReplyBuilder;
  #headers: unknown;

  constructor(model: KnownModel, id: string, request: ModelRequest, options: ModelCallOptions) {
    const { delta, warn = ignoreWarning } = options;
    this.#model = model;
    this.#id = id;
    this.#request = request;
    this.#options = options;
    const { messages } = request;
    this.#reply = new ReplyBuilder({ client: model.provider, model: model.modelId, messages, delta, warn });
  }

  /** Returns the reply or its failure. Rejects with the reason of the signal on abort. */
  async ask(mode: "stream" | "whole"): Promise<CallResult> {
    const { signal } = this.#options;
    const phase: { at: "request" | "stream" } = { at: "request" };
    try {
      let nextRequest: ModelRequest | undefined = this.#request;
      for (let round = 0; nextRequest !== undefined; round++) {
        for await (const part of this.#openParts(nextRequest, mode)) {
          phase.at = "stream";
          this.#append(part);
        }
        nextRequest = round < maxPauses ? this.#continuePaused() : undefined;
      }
    } catch (thrown) {
      signal.throwIfAborted();
      return { failure: await this.#toFailure(thrown, phase.at) };
    }
    signal.throwIfAborted();
    const result = this.#reply.build();
    if (!("broken" in result)) return result;
    const reason = this.#describeOtherContent() ?? result.broken;
    return { failure: createBrokenReplyError(reason, this.#id, this.#reply.getUsage()) };
  }

  /** Returns true when the response was JSON and no part of it could be read. */
  isUnreadableJson(): boolean {
    return isJsonResponse(this.#headers) && this.#reply.isEmpty();
  }

  async *#openParts(request: ModelRequest, mode: "stream" | "whole"): AsyncGenerator<StreamPart, void> {
    const { signal, warn = ignoreWarning } = this.#options;
    const prepared = prepareCall(this.#model, request, signal, warn);
    if (mode === "whole") {
      const answer = prepared.then(({ generate }) => generate());
      yield* toStreamParts(await awaitAnswer(answer, signal, ignoreRejection));
      return;
    }
    const opening = prepared.then(({ stream }) => stream());
    const opened = await awaitAnswer(opening, signal, ({ stream: late }) => late.cancel(signal.reason));
    this.#headers = opened.response?.headers;
    yield* readParts(opened.stream, signal);
  }

  #append(part: StreamPart): void {
    const { alive, warn = ignoreWarning } = this.#options;
    if (part.type === "error") {
      const unknown = findUnknownEvent(this.#model.provider, part.error);
      if (unknown === undefined) throw part.error;
      warn(`the event ${unknown} of the provider was skipped: its client does not know it`);
    }
    alive?.(contentlessParts.has(part.type) ? "ping" : "part");
    this.#reply.append(part);
  }

  #continuePaused(): ModelRequest | undefined {
    const paused = this.#reply.continuePaused();
    const { messages } = this.#request;
    return paused && { ...this.#request, messages: [...messages, { role: "assistant", id: "", ...paused }] };
  }

  async #toFailure(thrown: unknown, phase: "request" | "stream"): Promise<StatewrightError> {
    const { headers } = this.#request;
    return toModelError(thrown, {
      model: this.#id,
      phase,
      secrets: await listClientSecrets(this.#model),
      otherContent: this.#describeOtherContent(),
      ...omitUndefined({ headers, usage: this.#reply.getUsage() }),
    });
  }

  #describeOtherContent(): string | undefined {
    return describeOtherContent(this.#headers, findClientAddress(this.#model));
  }
}

/** Maximum number of continuations of a paused reply; the reply then counts as complete. */
const maxPauses = 20;

/** Stream parts without content: proof of a live connection only. */
const contentlessParts: ReadonlySet<string> = new Set(["stream-start", "response-metadata", "ping", "raw", "custom"]);

/** Default warning callback: warnings are saved with the reply in any case. */
function ignoreWarning(): void {}

type OpenedStream = {
  readonly stream: ReadableStream<StreamPart>;
  readonly response?: { readonly headers?: unknown } | undefined;
};

/** A request in the form of the model's specification: as a stream, or as a whole. */
interface PreparedCall {
  readonly stream: () => PromiseLike<OpenedStream>;
  readonly generate: () => PromiseLike<unknown>;
}

async function prepareCall(
  model: KnownModel,
  request: ModelRequest,
  signal: AbortSignal,
  warn: (warning: string) => void,
): Promise<PreparedCall> {
  const rules = getClientRules(model.provider);
  const settings = { ...toCallSettings(request), abortSignal: signal };
  const takesUrl = request.messages.some(hasUrl) ? createUrlPredicate((await model.supportedUrls) ?? {}) : rejectUrl;
  const to = { client: model.provider, model: model.modelId, rules: getRequestRules(request, rules), takesUrl, warn };
  const { reasoning } = request;
  if (model.specificationVersion === "v4") {
    const prompt = toPrompt(request, { ...to, dialect: v4 });
    const call = {
      ...settings,
      ...toCallTools(request, "provider", to),
      ...omitUndefined({ reasoning }),
      prompt,
    };
    return { stream: () => model.doStream(call), generate: () => model.doGenerate(call) };
  }
  if (reasoning !== undefined)
    warn(
      `reasoning was not sent: a model of specification ${model.specificationVersion} reads it from providerOptions only`,
    );
  if (model.specificationVersion === "v3") {
    const prompt = toPrompt(request, { ...to, dialect: v3 });
    const call = { ...settings, ...toCallTools(request, "provider", to), prompt };
    return { stream: () => model.doStream(call), generate: () => model.doGenerate(call) };
  }
  const prompt = toPrompt(request, { ...to, dialect: v2 });
  const call = { ...settings, ...toCallTools(request, "provider-defined", to), prompt };
  return { stream: () => model.doStream(call), generate: () => model.doGenerate(call) };
}

function hasUrl({ content }: Message): boolean {
  return typeof content !== "string" && content.some((block) => "url" in block && block.url !== undefined);
}

function rejectUrl(): boolean {
  return false;
}

/** The OpenAI client accepts files of every type if `passThroughUnsupportedFiles` is set. */
function getRequestRules({ providerOptions = {} }: ModelRequest, rules: ClientRules): ClientRules {
  const passes = ["openai", "azure"].some((name) => {
    const options = providerOptions[name];
    return isObject(options) && options["passThroughUnsupportedFiles"] === true;
  });
  if (rules.family !== "openai" || !passes) return rules;
  const { media: _media, ...rest } = rules;
  return rest;
}

/** Resolves to the answer, or rejects on abort. `discard` releases an answer that arrives after the abort. */
async function awaitAnswer<Answer>(
  pending: Promise<Answer>,
  signal: AbortSignal,
  discard: (late: Answer) => unknown,
): Promise<Answer> {
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => {
      reject(signal.reason);
      pending.then(discard).catch(ignoreRejection);
    };
  });
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([pending, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** The abort is the outcome of the call: errors while the connection closes are ignored. */
function ignoreRejection(): void {}

/**
 * Yields stream parts until the end of the stream, an error, or the abort signal, even if the model ignores the
 * signal.
 */
async function* readParts(stream: ReadableStream<StreamPart>, signal: AbortSignal): AsyncGenerator<StreamPart, void> {
  const reader = stream.getReader();
  const close = (): void => void reader.cancel(signal.reason).catch(ignoreRejection);
  signal.addEventListener("abort", close, { once: true });
  try {
    if (signal.aborted) return;
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    signal.removeEventListener("abort", close);
    close();
  }
}
