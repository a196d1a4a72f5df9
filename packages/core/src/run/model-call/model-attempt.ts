/**
 * A request to a model: converts the request to the wire format of the model, applies timeouts, streams deltas, and
 * validates the reply.
 */

import { describeThrown, StatewrightError } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import type { SchemaIssue } from "../../base/schema.ts";
import { toWellFormedData, toWellFormedSaved } from "../../base/well-formed.ts";
import type { Plan } from "../../compile/plan.ts";
import type { ModelTimeouts } from "../../model/call-policy.ts";
import { type AssistantMessage, findMessageIssue, type Message, type TextBlock } from "../../model/message.ts";
import {
  type Model,
  type ModelCallOptions,
  type ModelFailure,
  type ModelReply,
  type ModelRequest,
  normalizeRawArgs,
} from "../../model/model.ts";
import { toSentMessages } from "../../state/channel.ts";
import { type EventEmitter, emit } from "../events/events.ts";
import { addAbortListener } from "../session/abort.ts";
import type { Position } from "../session/parts/position.ts";
import type { TaskScope } from "../session/scope.ts";
import { type IdleWatch, watchIdle } from "../task/attempt.ts";
import type { MessageStream } from "./message-stream.ts";

/** Timeouts of a request in milliseconds; `remainingMs` is the rest of `totalMs`. */
export type AttemptLimits = ModelTimeouts & { readonly remainingMs?: number | undefined };

/** Options of `attemptModel`. */
interface AttemptModelOptions {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly stream: MessageStream;
  readonly limits: AttemptLimits | undefined;
}

/**
 * Makes a single request. Rejects with the model's error, with `model_failed` on a timeout, or with the signal's
 * reason.
 */
export async function attemptModel(
  position: Position,
  events: EventEmitter,
  scope: TaskScope,
  { model, request, stream, limits }: AttemptModelOptions,
): Promise<ModelReply> {
  const wire = createWire(position.plan, model, request);
  const forwardDelta: DeltaHandler = (delta) => stream.emitDelta(delta, wire.toCanonicalName);
  if (limits !== undefined) {
    const reply = await attemptWithTimeouts(events, scope, limits, { model, request: wire.request, forwardDelta });
    return checkReply(model, wire.convertReply(reply));
  }
  const hasIdleTimeout = scope.node.policy.idleTimeoutMs !== undefined;
  let isFinished = false;
  let reply: ModelReply;
  try {
    reply = await model.respond(wire.request, {
      ...(hasIdleTimeout && { alive: scope.sendHeartbeat }),
      signal: scope.getSignal(),
      warn: createWarningReporter(events, scope, model),
      delta:
        hasIdleTimeout || events.stream.hasReaders()
          ? (delta) => {
              // Deltas after the end of a request are ignored.
              if (isFinished || scope.isEnded()) return;
              scope.sendHeartbeat();
              forwardDelta(delta);
            }
          : undefined,
    });
  } finally {
    isFinished = true;
  }
  return checkReply(model, wire.convertReply(reply));
}

type DeltaHandler = NonNullable<ModelCallOptions["delta"]>;

/** Options of `attemptWithTimeouts`. */
interface AttemptWithTimeoutsOptions {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly forwardDelta: DeltaHandler;
}

/** Makes the request with a signal of its own. A timeout rejects at once, even when the model ignores its signal. */
function attemptWithTimeouts(
  events: EventEmitter,
  scope: TaskScope,
  { firstTokenMs, idleMs, totalMs, remainingMs }: AttemptLimits,
  { model, request, forwardDelta }: AttemptWithTimeoutsOptions,
): Promise<ModelReply> {
  const { world } = events;
  const outer = scope.getSignal();
  const controller = new AbortController();
  return new Promise((resolve, reject) => {
    let isFinished = false;
    let idle: IdleWatch | undefined;
    let cancelFirstTokenTimer: (() => void) | undefined;
    const cleanups: (() => void)[] = [];
    const finish = (): boolean => {
      if (isFinished) return false;
      isFinished = true;
      cancelFirstTokenTimer?.();
      idle?.stop();
      for (const stop of cleanups) stop();
      return true;
    };
    const fail = (reason: unknown): void => {
      if (!finish()) return;
      reject(reason);
      controller.abort(reason);
    };
    const handlePart = (): void => {
      scope.sendHeartbeat();
      cancelFirstTokenTimer?.();
      cancelFirstTokenTimer = undefined;
      if (idle !== undefined) idle.beat();
      else if (idleMs !== undefined)
        idle = watchIdle(world, idleMs, () =>
          fail(createTimeoutError(model, "idleMs", idleMs, { text: "was silent for", retryable: true })),
        );
    };

    if (outer.aborted) {
      fail(outer.reason);
      return;
    }
    cleanups.push(addAbortListener(outer, () => fail(outer.reason)));
    if (firstTokenMs !== undefined)
      cancelFirstTokenTimer = world.schedule.after(firstTokenMs, () =>
        fail(
          createTimeoutError(model, "firstTokenMs", firstTokenMs, { text: "sent no first token for", retryable: true }),
        ),
      );
    if (remainingMs !== undefined && totalMs !== undefined)
      cleanups.push(
        world.schedule.after(remainingMs, () =>
          fail(
            createTimeoutError(model, "totalMs", totalMs, {
              text: "did not finish, including retries, within",
              retryable: false,
            }),
          ),
        ),
      );
    const response = Promise.resolve().then(() =>
      model.respond(request, {
        signal: controller.signal,
        warn: createWarningReporter(events, scope, model),
        delta: (delta) => {
          if (isFinished) return;
          handlePart();
          forwardDelta(delta);
        },
        alive: (sign) => {
          if (isFinished) return;
          if (sign === "part") handlePart();
          else {
            scope.sendHeartbeat();
            idle?.beat();
          }
        },
      }),
    );
    response.then(
      (reply) => {
        if (finish()) resolve(reply);
      },
      (error: unknown) => {
        if (finish()) reject(error);
      },
    );
  });
}

/** Error details of a timeout. */
interface TimeoutDetails extends ModelFailure {
  readonly limit: keyof ModelTimeouts;
}

function createTimeoutError(
  model: Model,
  limit: keyof ModelTimeouts,
  ms: number,
  { text, retryable }: { readonly text: string; readonly retryable: boolean },
): StatewrightError {
  const details: TimeoutDetails = { retryable, kind: "timeout", limit };
  return new StatewrightError("model_failed", {
    what: `the model "${model.id}" ${text} ${ms} ms`,
    next: `Increase ${limit}, or add a retry or a fallback`,
    details,
  });
}

/** Returns a valid reply. Throws `model_failed` for any other value from the model or from middleware `by`. */
export function checkReply(model: Model, reply: ModelReply, by?: { readonly name: string }): ModelReply {
  const issue = findReplyIssue(reply);
  if (issue === undefined) return toWellFormedData({ ...reply, content: normalizeRawArgs(reply.content) });
  ignoreRejections(reply);
  const details: ModelFailure = { retryable: false, kind: "broken_reply" };
  throw new StatewrightError("model_failed", {
    what: `the model "${model.id}"${by === undefined ? "" : `, through the middleware "${by.name}",`} returned an invalid reply: ${issue.path === "" ? "" : `${issue.path}: `}${issue.message}`,
    next: "Return { content: […], finish }; an aroundModel hook must return the reply of next, or a reply of its own",
    details,
  });
}

function findReplyIssue(reply: unknown): SchemaIssue | undefined {
  if (!isPlainObject(reply)) return { path: "", message: `it is ${describeValue(reply)}` };
  try {
    return findMessageIssue({ content: reply["content"], finish: reply["finish"], role: "assistant", id: "" });
  } catch (cause) {
    return { path: "", message: `it cannot be read: ${describeThrown(cause)}` };
  }
}

const emittedWarnings: WeakMap<EventEmitter, Set<string>> = new WeakMap();

/** Creates the reporter for warnings of a model. Emits an event and writes a log line. */
function createWarningReporter(
  events: EventEmitter,
  scope: TaskScope,
  { id: model }: Model,
): (warning: string) => void {
  return (warning) => {
    if (scope.isEnded()) return;
    const emitted = emittedWarnings.get(events) ?? new Set();
    emittedWarnings.set(events, emitted);
    const key = `${model}: ${warning}`;
    if (emitted.has(key)) return;
    emitted.add(key);
    const { node, id: task } = scope.task;
    events.world.log("warn", `the model "${model}" warns: ${warning}`, { node, task });
    emit(events, { type: "model.warned", node, task, model, warning });
  };
}

/** Request and reply conversion of a model call. */
export interface ModelWire {
  readonly request: ModelRequest;
  readonly toCanonicalName: (name: string) => string;
  readonly convertReply: (reply: ModelReply) => ModelReply;
}

/**
 * Creates the wire format of a request: removes run-internal message fields, and renames tools to the provider's
 * aliases.
 */
function createWire(plan: Plan, model: Model, request: ModelRequest): ModelWire {
  const sent = stripImages(model, toSentRequest(request));
  const aliases = collectAliases(plan, model);
  if (aliases === undefined) return { request: sent, toCanonicalName: keepUnchanged, convertReply: keepUnchanged };
  const canonicalNames = new Map([...aliases].map(([canonical, alias]) => [alias, canonical]));
  const toAlias = (name: string): string => aliases.get(name) ?? name;
  const canonical = (name: string): string => canonicalNames.get(name) ?? name;
  return {
    request: renameTools(sent, toAlias),
    toCanonicalName: canonical,
    convertReply: (reply) => renameCalls(reply, canonical),
  };
}

/** Removes run notes, and replaces lone surrogates, which providers refuse; a thread may have saved them before. */
function toSentRequest({ messages, tools, ...settings }: ModelRequest): ModelRequest {
  return {
    ...toWellFormedData(settings),
    messages: toSentMessages(messages),
    tools: tools.map(toWellFormedSaved),
  };
}

/** Collects the tool aliases of the model's provider; undefined without aliases. */
function collectAliases({ toolNodes }: Plan, model: Model): ReadonlyMap<string, string> | undefined {
  const id = String(model.id);
  const slash = id.indexOf("/");
  const provider = slash < 0 ? id : id.slice(0, slash);
  let aliases: Map<string, string> | undefined;
  for (const { registry } of toolNodes)
    for (const [canonical, alias] of registry.aliases(provider) ?? [])
      aliases = (aliases ?? new Map<string, string>()).set(canonical, alias);
  return aliases;
}

function keepUnchanged<Value>(value: Value): Value {
  return value;
}

function renameTools(request: ModelRequest, toAlias: (name: string) => string): ModelRequest {
  const { toolChoice, providerTools } = request;
  return {
    ...request,
    tools: request.tools.map((tool) => ({ ...tool, name: toAlias(tool.name) })),
    ...(providerTools && { providerTools: providerTools.map((tool) => ({ ...tool, name: toAlias(tool.name) })) }),
    ...(typeof toolChoice === "object" ? { toolChoice: { tool: toAlias(toolChoice.tool) } } : {}),
    messages: request.messages.map((message) => {
      if (message.role === "tool") return { ...message, name: toAlias(message.name) };
      return message.role === "assistant" ? renameCalls(message, toAlias) : message;
    }),
  };
}

function renameCalls<Holder extends Pick<AssistantMessage, "content">>(
  holder: Holder,
  rename: (name: string) => string,
): Holder {
  // Invalid replies are rejected with a clear error in `checkReply`.
  if (!Array.isArray(holder?.content)) return holder;
  const content = holder.content.map((block) =>
    block?.type === "call" ? { ...block, name: rename(block.name) } : block,
  );
  return { ...holder, content };
}

/** Replaces each image of a request with a line of text, for a model that declares no image input. */
function stripImages({ images }: Model, request: ModelRequest): ModelRequest {
  if (images !== false || !request.messages.some(hasImage)) return request;
  return { ...request, messages: request.messages.map(stripMessageImages) };
}

function hasImage(message: Message): boolean {
  return typeof message.content !== "string" && message.content.some(({ type }) => type === "image");
}

function stripMessageImages(message: Message): Message {
  if (message.role !== "user" && message.role !== "tool") return message;
  const content = message.content.map((block) => (block.type === "image" ? toImageNote(block.mimeType) : block));
  return { ...message, content } as Message;
}

function toImageNote(mimeType: string): TextBlock {
  return { type: "text", text: `[An image (${mimeType}) that this model cannot see.]` };
}
