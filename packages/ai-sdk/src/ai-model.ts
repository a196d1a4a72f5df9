/** Adapts an AI SDK language model to `Model`: a stream and a reply per request. */

import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import type { LanguageModel, Message, Model, ModelCallOptions, ModelReply, ModelRequest } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import { toCallSettings, toCallTools } from "./call-settings.ts";
import { findClientAddress, listClientSecrets } from "./client-config.ts";
import { type ClientRules, getClientRules } from "./client-rules.ts";
import { v2, v3, v4 } from "./dialect.ts";
import { createBrokenReplyError, describeOtherContent, toModelError } from "./failure.ts";
import { createUrlPredicate } from "./media.ts";
import { toPrompt } from "./prompt.ts";
import { isObject, omitUndefined } from "./provider-json.ts";
import { ReplyBuilder } from "./reply.ts";
import type { StreamPart } from "./stream-part.ts";

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
  { signal, delta, alive, warn = ignoreWarning }: ModelCallOptions,
): Promise<ModelReply> {
  signal.throwIfAborted();
  const reply = new ReplyBuilder({
    client: model.provider,
    model: model.modelId,
    messages: request.messages,
    delta,
    warn,
  });
  let phase: "request" | "stream" = "request";
  let otherContent: string | undefined;
  try {
    let nextRequest: ModelRequest | undefined = request;
    for (let round = 0; nextRequest !== undefined; round++) {
      const { stream, response } = await awaitStream(openStream(model, nextRequest, signal, warn), signal);
      otherContent = describeOtherContent(response?.headers, findClientAddress(model));
      for await (const part of readParts(stream, signal)) {
        phase = "stream";
        if (part.type === "error") throw part.error;
        alive?.(contentlessParts.has(part.type) ? "ping" : "part");
        reply.append(part);
      }
      const pausedReply = round < maxPauses ? reply.continuePaused() : undefined;
      nextRequest = pausedReply && {
        ...request,
        messages: [...request.messages, { role: "assistant", id: "", ...pausedReply }],
      };
    }
  } catch (thrown) {
    signal.throwIfAborted();
    throw toModelError(thrown, {
      model: id,
      phase,
      secrets: await listClientSecrets(model),
      otherContent,
      ...omitUndefined({ headers: request.headers, usage: reply.getUsage() }),
    });
  }
  signal.throwIfAborted();
  const result = reply.build();
  if ("broken" in result) throw createBrokenReplyError(otherContent ?? result.broken, id, reply.getUsage());
  return result.reply;
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

async function openStream(
  model: KnownModel,
  request: ModelRequest,
  signal: AbortSignal,
  warn: (warning: string) => void,
): Promise<OpenedStream> {
  const rules = getClientRules(model.provider);
  const settings = { ...toCallSettings(request), abortSignal: signal };
  const takesUrl = request.messages.some(hasUrl) ? createUrlPredicate((await model.supportedUrls) ?? {}) : rejectUrl;
  const to = { client: model.provider, model: model.modelId, rules: getRequestRules(request, rules), takesUrl, warn };
  const { reasoning } = request;
  if (model.specificationVersion === "v4") {
    const prompt = toPrompt(request, { ...to, dialect: v4 });
    return model.doStream({
      ...settings,
      ...toCallTools(request, "provider", to),
      ...omitUndefined({ reasoning }),
      prompt,
    });
  }
  if (reasoning !== undefined)
    warn(
      `reasoning was not sent: a model of specification ${model.specificationVersion} reads it from providerOptions only`,
    );
  if (model.specificationVersion === "v3") {
    const prompt = toPrompt(request, { ...to, dialect: v3 });
    return model.doStream({ ...settings, ...toCallTools(request, "provider", to), prompt });
  }
  const prompt = toPrompt(request, { ...to, dialect: v2 });
  return model.doStream({ ...settings, ...toCallTools(request, "provider-defined", to), prompt });
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

/** Resolves to the opened stream, or rejects on abort. A stream opened after the abort is cancelled. */
async function awaitStream(pending: Promise<OpenedStream>, signal: AbortSignal): Promise<OpenedStream> {
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => {
      reject(signal.reason);
      pending.then(({ stream }) => stream.cancel(signal.reason)).catch(ignoreRejection);
    };
  });
  signal.addEventListener("abort", abort, { once: true });
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
