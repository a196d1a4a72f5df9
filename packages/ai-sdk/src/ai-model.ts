/** Adapts an AI SDK language model to `Model`: a stream and a reply per request. */

import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import type {
  LanguageModel,
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
import { type Dialect, v2, v3, v4 } from "./dialect.ts";
import { createBrokenReplyError, describeOtherContent, findUnknownEvent, toModelError } from "./failure.ts";
import { createUrlPredicate } from "./media.ts";
import { toPrompt } from "./prompt/prompt.ts";
import { hasUrlFrom, PromptMemory } from "./prompt/prompt-memory.ts";
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
  const target = { model: model as KnownModel, id, prepareCall: createCallFactory(model as KnownModel) };
  return {
    id,
    ...omitUndefined({ name, images, structuredOutput }),
    respond: (request, at) => respond(target, request, at),
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

/** A model of the AI SDK with the function that prepares its requests. */
interface Target {
  readonly model: KnownModel;
  readonly id: string;
  readonly prepareCall: PrepareCall;
}

async function respond(target: Target, request: ModelRequest, options: ModelCallOptions): Promise<ModelReply> {
  options.signal.throwIfAborted();
  const unstreamed = unstreamedModels.has(target.model);
  const call = new WireCall(target, request, options);
  const result = await call.ask(unstreamed ? "whole" : "stream");
  if (!("failure" in result)) return result.reply;
  if (unstreamed || !call.isUnreadableJson()) throw result.failure;
  const whole = await new WireCall(target, request, options).ask("whole");
  if ("failure" in whole) throw result.failure;
  unstreamedModels.add(target.model);
  return whole.reply;
}

/** Models whose server answers with JSON instead of a stream of events. */
const unstreamedModels: WeakSet<KnownModel> = new WeakSet();

type CallResult = { readonly reply: ModelReply } | { readonly failure: unknown };

/** A request of a model, with the continuations of its paused replies. */
class WireCall {
  readonly #target: Target;
  readonly #request: ModelRequest;
  readonly #options: ModelCallOptions;
  readonly #reply: ReplyBuilder;
  #phase: "request" | "stream" = "request";
  #headers: unknown;

  constructor(target: Target, request: ModelRequest, options: ModelCallOptions) {
    const { provider: client, modelId: model } = target.model;
    const { delta, warn = ignoreWarning } = options;
    this.#target = target;
    this.#request = request;
    this.#options = options;
    this.#reply = new ReplyBuilder({ client, model, messages: request.messages, delta, warn });
  }

  /** Returns the reply or its failure. Rejects with the reason of the signal on abort. */
  async ask(mode: "stream" | "whole"): Promise<CallResult> {
    const { signal } = this.#options;
    try {
      let nextRequest: ModelRequest | undefined = this.#request;
      for (let round = 0; nextRequest !== undefined; round++) {
        await this.#receive(nextRequest, mode);
        nextRequest = round < maxPauses ? this.#continuePaused() : undefined;
      }
    } catch (thrown) {
      signal.throwIfAborted();
      return { failure: await this.#toFailure(thrown) };
    }
    signal.throwIfAborted();
    const result = this.#reply.build();
    if (!("broken" in result)) return result;
    const reason = this.#describeOtherContent() ?? result.broken;
    return { failure: createBrokenReplyError(reason, this.#target.id, this.#reply.getUsage()) };
  }

  /** Returns true when the response was JSON and no part of it could be read. */
  isUnreadableJson(): boolean {
    return isJsonResponse(this.#headers) && this.#reply.isEmpty();
  }

  async #receive(request: ModelRequest, mode: "stream" | "whole"): Promise<void> {
    const { signal, warn = ignoreWarning } = this.#options;
    const prepared = this.#target.prepareCall(request, signal, warn);
    if (mode === "whole") {
      const answer = prepared.then(({ generate }) => generate());
      for (const part of toStreamParts(await awaitAnswer(answer, signal, ignoreRejection))) this.#append(part);
      return;
    }
    const opening = prepared.then(({ open }) => open());
    const { stream, response } = await awaitAnswer(opening, signal, (late) => late.stream.cancel(signal.reason));
    this.#headers = response?.headers;
    await readParts(stream, signal, (part) => this.#append(part));
  }

  #append(part: StreamPart): void {
    this.#phase = "stream";
    const { alive, warn = ignoreWarning } = this.#options;
    if (part.type === "error") {
      const unknown = findUnknownEvent(this.#target.model.provider, part.error);
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

  async #toFailure(thrown: unknown): Promise<StatewrightError> {
    const { headers } = this.#request;
    return toModelError(thrown, {
      model: this.#target.id,
      phase: this.#phase,
      secrets: await listClientSecrets(this.#target.model),
      otherContent: this.#describeOtherContent(),
      ...omitUndefined({ headers, usage: this.#reply.getUsage() }),
    });
  }

  #describeOtherContent(): string | undefined {
    return this.#headers === undefined
      ? undefined
      : describeOtherContent(this.#headers, findClientAddress(this.#target.model));
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
  readonly open: () => PromiseLike<OpenedStream>;
  readonly generate: () => PromiseLike<unknown>;
}

type PrepareCall = (
  request: ModelRequest,
  signal: AbortSignal,
  warn: (warning: string) => void,
) => Promise<PreparedCall>;

/** Creates the function that prepares requests of a model, in the dialect of its specification. */
function createCallFactory(model: KnownModel): PrepareCall {
  switch (model.specificationVersion) {
    case "v4": {
      const prepare = createCallPreparer(model, v4, "provider");
      return async (request, signal, warn) => {
        const { reasoning } = request;
        const prepared = await prepare(request, signal, warn);
        const call = reasoning === undefined ? prepared : { ...prepared, reasoning };
        return { open: () => model.doStream(call), generate: () => model.doGenerate(call) };
      };
    }
    case "v3": {
      const prepare = createCallPreparer(model, v3, "provider");
      return async (request, signal, warn) => {
        warnAboutReasoning(request, "v3", warn);
        const call = await prepare(request, signal, warn);
        return { open: () => model.doStream(call), generate: () => model.doGenerate(call) };
      };
    }
    case "v2": {
      const prepare = createCallPreparer(model, v2, "provider-defined");
      return async (request, signal, warn) => {
        warnAboutReasoning(request, "v2", warn);
        const call = await prepare(request, signal, warn);
        return { open: () => model.doStream(call), generate: () => model.doGenerate(call) };
      };
    }
  }
}

function warnAboutReasoning({ reasoning }: ModelRequest, version: string, warn: (warning: string) => void): void {
  if (reasoning === undefined) return;
  warn(`reasoning was not sent: a model of specification ${version} reads it from providerOptions only`);
}

/** Creates the function that converts requests to call options. Conversions of messages are memoized. */
function createCallPreparer<Data, Media, NativePart, ToolType extends "provider" | "provider-defined">(
  model: KnownModel,
  dialect: Dialect<Data, Media, NativePart>,
  toolType: ToolType,
) {
  const { provider: client, modelId } = model;
  const rulesOfClient = getClientRules(client);
  const defaults = { rules: rulesOfClient, memory: new PromptMemory<Data, Media, NativePart>() };
  const permissive = { rules: omitMediaRules(rulesOfClient), memory: new PromptMemory<Data, Media, NativePart>() };
  return async (request: ModelRequest, signal: AbortSignal, warn: (warning: string) => void) => {
    const { rules, memory } = passesUnsupportedFiles(request) ? permissive : defaults;
    const start = memory.findStart(request.messages);
    const takesUrl = hasUrlFrom(request.messages, start?.messages.length ?? 0)
      ? createUrlPredicate((await model.supportedUrls) ?? {})
      : rejectUrl;
    const to = { client, model: modelId, rules, dialect, takesUrl, warn };
    const prompt = toPrompt(request, to, memory, start);
    return Object.assign(toCallSettings(request), toCallTools(request, toolType, to), { abortSignal: signal, prompt });
  };
}

function rejectUrl(): boolean {
  return false;
}

/** Returns true for a request that lets the OpenAI client send files of every type. */
function passesUnsupportedFiles({ providerOptions }: ModelRequest): boolean {
  if (providerOptions === undefined) return false;
  return ["openai", "azure"].some((name) => {
    const options = providerOptions[name];
    return isObject(options) && options["passThroughUnsupportedFiles"] === true;
  });
}

/** Returns the rules of an OpenAI client that sends files of every type; other clients keep their rules. */
function omitMediaRules(rules: ClientRules): ClientRules {
  if (rules.family !== "openai") return rules;
  const { media: _media, ...rest } = rules;
  return rest;
}

/** Resolves to the answer, or rejects on abort. `discard` releases an answer that arrives after the abort. */
function awaitAnswer<Answer>(
  pending: Promise<Answer>,
  signal: AbortSignal,
  discard: (late: Answer) => unknown,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      reject(signal.reason);
      pending.then(discard).catch(ignoreRejection);
    };
    signal.addEventListener("abort", abort, { once: true });
    const finish = (): void => signal.removeEventListener("abort", abort);
    pending.then(
      (answer) => {
        finish();
        resolve(answer);
      },
      (error: unknown) => {
        finish();
        reject(error);
      },
    );
  });
}

/** The abort is the outcome of the call: errors while the connection closes are ignored. */
function ignoreRejection(): void {}

/**
 * Reads stream parts until the end of the stream, an error, or the abort signal, even if the model ignores the
 * signal. An error of the handler closes the stream.
 */
async function readParts(
  stream: ReadableStream<StreamPart>,
  signal: AbortSignal,
  handle: (part: StreamPart) => void,
): Promise<void> {
  const reader = stream.getReader();
  const close = (): void => void reader.cancel(signal.reason).catch(ignoreRejection);
  signal.addEventListener("abort", close, { once: true });
  let isAtEnd = false;
  try {
    while (!signal.aborted) {
      const { done, value } = await reader.read();
      isAtEnd = done;
      if (done) return;
      handle(value);
    }
  } finally {
    signal.removeEventListener("abort", close);
    if (!isAtEnd) close();
  }
}
