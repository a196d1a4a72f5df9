/** A language model of the AI SDK as a model of ours: one request, one stream, one reply. */

import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import {
  type Message,
  type Model,
  type ModelCallOptions,
  type ModelReply,
  type ModelRequest,
  StatewrightError,
} from "@statewright/core";
import { settingsOf, toolsOf } from "./call-settings.ts";
import { type ClientRules, rulesOf } from "./client-rules.ts";
import { v2, v3, v4 } from "./dialect.ts";
import { brokenReply, modelFailure } from "./failure.ts";
import type { LanguageModel } from "./language-model.ts";
import { urlsOf } from "./media.ts";
import { promptOf } from "./prompt.ts";
import { isObject, present } from "./provider-json.ts";
import { growReply } from "./reply.ts";
import type { StreamPart } from "./stream-part.ts";

/** What `aiModel` cannot know of a model by itself. */
export interface AiModelOptions {
  /** What people are shown in place of the id. */
  readonly name?: string;
  /** False for a model that cannot see: it reads in a line that there was an image. */
  readonly images?: boolean;
  /** Whether its provider keeps the schema of an answer itself. Default: as far as the provider is known. */
  readonly structuredOutput?: boolean;
}

/**
 * Make a model of ours from any language model of the AI SDK.
 *
 * ```ts
 * const model = aiModel(anthropic("claude-sonnet-4-5"));
 * ```
 *
 * Its `respond` rejects with `model_failed` (details: {@link ModelFailure}), with `missing_secret` when the client finds
 * no key, and with the signal's reason when it is aborted. Throws `invalid_option` for a model of another specification
 * than V2, V3 and V4.
 */
export function aiModel(model: LanguageModel, options: AiModelOptions = {}): Model {
  const id = `${model.provider.split(".")[0]}/${model.modelId}`;
  checkSpecification(model.specificationVersion, id);
  const { name, images, structuredOutput = saysStructuredOutput(model) } = options;
  return {
    id,
    ...present({ name, images, structuredOutput }),
    respond: (request, at) => respond(model as KnownModel, id, request, at),
  };
}

function checkSpecification(version: string, id: string): void {
  if (["v2", "v3", "v4"].includes(version)) return;
  throw new StatewrightError("invalid_option", {
    what: `the language model "${id}" has specification ${JSON.stringify(version)}, the adapter speaks "v2", "v3" and "v4"`,
    next: "Install a version of the provider's package that has one of these",
  });
}

function saysStructuredOutput(model: LanguageModel): boolean | undefined {
  const { supportsStructuredOutputs: said } = model as { supportsStructuredOutputs?: unknown };
  return typeof said === "boolean" ? said : keepsSchemas(model.provider);
}

/** True for a client whose provider is known to keep the schema of an answer itself; of others nobody knows. */
export function keepsSchemas(client: string): true | undefined {
  return rulesOf(client).family === undefined ? undefined : true;
}

type KnownModel = LanguageModelV2 | LanguageModelV3 | LanguageModelV4;

async function respond(
  model: KnownModel,
  id: string,
  request: ModelRequest,
  { signal, delta, alive, warn = unheard }: ModelCallOptions,
): Promise<ModelReply> {
  signal.throwIfAborted();
  const reply = growReply({ client: model.provider, model: model.modelId, messages: request.messages, delta, warn });
  let during: "request" | "stream" = "request";
  try {
    let asked: ModelRequest | undefined = request;
    for (let round = 0; asked !== undefined; round++) {
      const { stream } = await started(ask(model, asked, signal, warn), signal);
      for await (const part of partsOf(stream, signal)) {
        during = "stream";
        if (part.type === "error") throw part.error;
        alive?.(withoutContent.has(part.type) ? "ping" : "part");
        reply.take(part);
      }
      const sofar = round < mostPauses ? reply.pause() : undefined;
      asked = sofar && { ...request, messages: [...request.messages, { role: "assistant", id: "", ...sofar }] };
    }
  } catch (thrown) {
    signal.throwIfAborted();
    throw modelFailure(thrown, { model: id, during, ...present({ headers: request.headers, usage: reply.cost() }) });
  }
  signal.throwIfAborted();
  const whole = reply.whole();
  if ("broken" in whole) throw brokenReply(whole.broken, id, reply.cost());
  return whole.reply;
}

/** How often a paused reply is sent back before it counts as whole. */
const mostPauses = 20;

/** Parts that say only that the other side is there. */
const withoutContent: ReadonlySet<string> = new Set(["stream-start", "response-metadata", "ping", "raw", "custom"]);

/** Warnings that nobody listens to are still saved with the reply. */
function unheard(): void {}

type Started = { readonly stream: ReadableStream<StreamPart> };

async function ask(
  model: KnownModel,
  request: ModelRequest,
  signal: AbortSignal,
  warn: (warning: string) => void,
): Promise<Started> {
  const rules = rulesOf(model.provider);
  const settings = { ...settingsOf(request), abortSignal: signal };
  const takesUrl = request.messages.some(hasUrl) ? urlsOf((await model.supportedUrls) ?? {}) : takesNone;
  const to = { client: model.provider, model: model.modelId, rules: rulesFor(request, rules), takesUrl, warn };
  const { reasoning } = request;
  if (model.specificationVersion === "v4") {
    const prompt = promptOf(request, { ...to, dialect: v4 });
    return model.doStream({ ...settings, ...toolsOf(request, "provider", to), ...present({ reasoning }), prompt });
  }
  if (reasoning !== undefined)
    warn(
      `reasoning was not sent: a model of specification ${model.specificationVersion} has it in providerOptions only`,
    );
  if (model.specificationVersion === "v3") {
    const prompt = promptOf(request, { ...to, dialect: v3 });
    return model.doStream({ ...settings, ...toolsOf(request, "provider", to), prompt });
  }
  const prompt = promptOf(request, { ...to, dialect: v2 });
  return model.doStream({ ...settings, ...toolsOf(request, "provider-defined", to), prompt });
}

function hasUrl({ content }: Message): boolean {
  return typeof content !== "string" && content.some((block) => "url" in block && block.url !== undefined);
}

function takesNone(): boolean {
  return false;
}

/** OpenAI's client sends files of every kind when it is told to. */
function rulesFor({ providerOptions = {} }: ModelRequest, rules: ClientRules): ClientRules {
  const passes = ["openai", "azure"].some((name) => {
    const options = providerOptions[name];
    return isObject(options) && options["passThroughUnsupportedFiles"] === true;
  });
  if (rules.family !== "openai" || !passes) return rules;
  const { media: _media, ...rest } = rules;
  return rest;
}

/** The started stream, or the abort; a stream that comes after the abort is closed. */
async function started(asking: Promise<Started>, signal: AbortSignal): Promise<Started> {
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => {
      reject(signal.reason);
      asking.then(({ stream }) => stream.cancel(signal.reason)).catch(abandoned);
    };
  });
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([asking, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** An aborted call has its outcome, the abort: how its connection came down has no reader. */
function abandoned(): void {}

/** The parts of a stream until it ends, fails or the signal fires, also when the model does not heed the signal. */
async function* partsOf(stream: ReadableStream<StreamPart>, signal: AbortSignal): AsyncGenerator<StreamPart, void> {
  const reader = stream.getReader();
  const close = (): void => void reader.cancel(signal.reason).catch(abandoned);
  signal.addEventListener("abort", close, { once: true });
  try {
    if (signal.aborted) return;
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
  } finally {
    signal.removeEventListener("abort", close);
    close();
  }
}
