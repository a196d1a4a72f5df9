/** A language model of the AI SDK as a model of ours: one request, one stream, one reply. */

import type { JSONSchema7, LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import {
  type Model,
  type ModelCallOptions,
  type ModelReply,
  type ModelRequest,
  StatewrightError,
  type ToolChoice,
} from "@statewright/core";
import { v2, v3, v4 } from "./dialect.ts";
import { brokenReply, modelFailure } from "./failure.ts";
import type { LanguageModel } from "./language-model.ts";
import { present, sentBack } from "./plain.ts";
import { promptOf } from "./prompt.ts";
import { growReply } from "./reply.ts";
import type { StreamPart } from "./stream-part.ts";

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
export function aiModel(model: LanguageModel): Model {
  const id = `${model.provider.split(".")[0]}/${model.modelId}`;
  checkSpecification(model.specificationVersion, id);
  return { id, respond: (request, options) => respond(model as KnownModel, id, request, options) };
}

function checkSpecification(version: string, id: string): void {
  if (["v2", "v3", "v4"].includes(version)) return;
  throw new StatewrightError("invalid_option", {
    what: `the language model "${id}" has specification ${JSON.stringify(version)}, the adapter speaks "v2", "v3" and "v4"`,
    next: "Install a version of the provider's package that has one of these",
  });
}

type KnownModel = LanguageModelV2 | LanguageModelV3 | LanguageModelV4;

async function respond(
  model: KnownModel,
  id: string,
  request: ModelRequest,
  { signal, delta }: ModelCallOptions,
): Promise<ModelReply> {
  signal.throwIfAborted();
  const reply = growReply(model.provider, request.messages, delta);
  let during: "request" | "stream" = "request";
  try {
    const { stream } = await started(ask(model, request, signal), signal);
    for await (const part of partsOf(stream, signal)) {
      during = "stream";
      if (part.type === "error") throw part.error;
      reply.take(part);
    }
  } catch (thrown) {
    signal.throwIfAborted();
    throw modelFailure(thrown, { model: id, during, ...present({ headers: request.headers }) });
  }
  signal.throwIfAborted();
  const whole = reply.whole();
  if ("broken" in whole) throw brokenReply(whole.broken, id);
  return whole.reply;
}

type Started = { readonly stream: ReadableStream<StreamPart> };

async function ask(model: KnownModel, request: ModelRequest, signal: AbortSignal): Promise<Started> {
  const settings = { ...settingsOf(request), abortSignal: signal };
  switch (model.specificationVersion) {
    case "v4":
      return model.doStream({ ...settings, prompt: promptOf(request, model.provider, v4) });
    case "v3":
      return model.doStream({ ...settings, prompt: promptOf(request, model.provider, v3) });
    case "v2":
      return model.doStream({ ...settings, prompt: promptOf(request, model.provider, v2) });
  }
}

function settingsOf(request: ModelRequest) {
  const { temperature, maxOutputTokens, seed, headers } = request;
  const tools = request.tools.map(({ name, description, inputSchema }) => ({
    type: "function" as const,
    name,
    description,
    inputSchema: inputSchema as JSONSchema7,
  }));
  const choice = request.toolChoice === undefined ? undefined : choiceOf(request.toolChoice);
  return {
    ...present({ temperature, maxOutputTokens, seed, headers: headers && { ...headers } }),
    ...(tools.length === 0 ? {} : { tools, ...present({ toolChoice: choice }) }),
    ...sentBack(request.providerOptions),
  };
}

function choiceOf(choice: ToolChoice) {
  return typeof choice === "string" ? { type: choice } : { type: "tool" as const, toolName: choice.tool };
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
