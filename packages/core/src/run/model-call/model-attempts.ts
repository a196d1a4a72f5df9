/**
 * The requests of one model call: retries, then fallback models. Model requests are retried only here: hooks,
 * interrupts and steps of the node are not repeated.
 */

import { extendError, isStatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { computeRetryDelayMs, shouldRetry } from "../../base/retry.ts";
import type { World } from "../../base/world.ts";
import {
  defaultMaxRetryAfterMs,
  type ModelCallPolicy,
  type ModelRetryPolicy,
  resolveFallback,
} from "../../model/call-policy.ts";
import type { AssistantMessage, FailedAttempt } from "../../model/message.ts";
import type { Model, ModelFailure, ModelReply, ModelRequest } from "../../model/model.ts";
import { getModelFailureKind, isProgrammingError, type ModelFailureKind } from "../../model/model-failure.ts";
import type { RequestEndListener } from "../../tool/policy/middleware.ts";
import { emit } from "../events/event-emitter.ts";
import { addAbortListener } from "../session/abort.ts";
import type { Signals } from "../session/parts/signals.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { sleep, type TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import {
  forgetFailedAttempts,
  type PreviousAttempts,
  recordRequestedModels,
  rememberFailedAttempts,
} from "./failed-attempts.ts";
import { createMessageStream, type MessageStream } from "./message-stream.ts";
import { type AttemptLimits, attemptModel } from "./model-attempt.ts";
import type { BeforeRequest } from "./request-hooks.ts";

/** Fields of a message about its requests. */
type AttemptNotes = Pick<AssistantMessage, "answeredBy" | "failedAttempts">;

/** The requests of one model call. */
export interface ModelAttempts {
  /** Requests until a model replies. A repeated call, e.g. by a hook, retracts the previous reply. */
  readonly generate: (request: ModelRequest) => Promise<ModelReply>;
  /**
   * Finishes the stream and returns the message with the fields about its requests. The caller emits the message
   * next.
   */
  readonly finishMessage: (message: AssistantMessage) => AssistantMessage;
}

const noNotes: AttemptNotes = Object.freeze({});

/** Requests of a call: the model, the policy, the attempts already made, and parts shared with its hooks. */
export interface AttemptParts {
  readonly primaryModel: Model;
  readonly key: string;
  readonly policy: ModelCallPolicy;
  readonly previous: PreviousAttempts;
  /** Target of the streamed deltas. */
  readonly stream?: MessageStream;
  /** Auxiliary model calls of hooks; grows until the message is finished. */
  readonly auxiliaryAttempts?: readonly FailedAttempt[];
  /** Called for each failed attempt, with its index among the requests for the message. */
  readonly onFailedAttempt?: (attempt: FailedAttempt, nth: number) => Promise<void>;
  /** Called before each request is sent. */
  readonly beforeRequest?: BeforeRequest | undefined;
}

/** Creates the requests of a call by its policy; `previous` are the attempts already made for its message. */
export function createModelAttempts(
  session: Pick<Session, "env" | "position" | "events" | "journal" | "signals">,
  scope: TaskScope,
  {
    primaryModel,
    key,
    policy,
    previous,
    stream = createMessageStream(session.events, session.env.redactor, scope.task, `${scope.task.id}:${key}`),
    auxiliaryAttempts = [],
    onFailedAttempt,
    beforeRequest,
  }: AttemptParts,
): ModelAttempts {
  const { task } = scope;
  const { clock } = session.env.world;
  const { timeouts, retry } = policy;
  const fallback = resolveFallback(policy);
  const messageId = `${task.id}:${key}`;
  const failedAttempts: FailedAttempt[] = [...previous.attempts];
  let answered: { readonly model: Model; readonly reply: ModelReply } | undefined;
  let deadline: number | undefined;

  if (previous.isFromOtherProcess) stream.retract(previous.attempts.at(-1)?.model ?? primaryModel.id, "unrecorded");

  const addFailedAttempt = (
    model: Model,
    kind: FailedAttempt["kind"],
    usage: FailedAttempt["usage"],
  ): Promise<void> | undefined => {
    const attempt: FailedAttempt = { model: model.id, kind, ...(usage === undefined ? {} : { usage }) };
    failedAttempts.push(attempt);
    stream.retract(model.id, kind);
    // An abandoned call calls no more hooks: the next pass reports the attempt.
    return kind === "cancelled" ? undefined : onFailedAttempt?.(attempt, failedAttempts.length - 1);
  };

  const getLimits = (): AttemptLimits | undefined => {
    if (timeouts === undefined) return undefined;
    return deadline === undefined ? timeouts : { ...timeouts, remainingMs: Math.max(0, deadline - clock.monotonic()) };
  };

  /**
   * Makes one request. When its node is abandoned, retracts the streamed text at once, because the node may be
   * retried.
   */
  const attemptOnce = (model: Model, request: ModelRequest): Promise<ModelReply> => {
    const { timeoutMs, idleTimeoutMs } = scope.node.policy;
    const mustWatch = timeoutMs !== undefined || idleTimeoutMs !== undefined || session.events.stream.hasReaders();
    return mustWatch && !scope.getSignal().aborted
      ? attemptWatched(model, request)
      : attemptModel(session.position, session.events, scope, { model, request, stream, limits: getLimits() });
  };

  const attemptWatched = async (model: Model, request: ModelRequest): Promise<ModelReply> => {
    const stopWatching = addAbortListener(scope.getSignal(), () => {
      void addFailedAttempt(model, "cancelled", undefined);
      rememberFailedAttempts(session.position, session.journal, task, { key, attempts: failedAttempts });
    });
    try {
      return await attemptModel(session.position, session.events, scope, {
        model,
        request,
        stream,
        limits: getLimits(),
      });
    } finally {
      stopWatching();
    }
  };

  /** Calls `beforeRequest`. Time spent in hooks does not count towards the total timeout. */
  const runBeforeRequest = async (model: Model, request: ModelRequest): Promise<RequestEndListener | undefined> => {
    if (beforeRequest === undefined) return undefined;
    const from = clock.monotonic();
    const ended = await beforeRequest(model, request);
    if (deadline !== undefined) deadline += clock.monotonic() - from;
    return ended;
  };

  const ask = async (request: ModelRequest): Promise<ModelReply> => {
    const replaced = answered;
    answered = undefined;
    if (replaced !== undefined) await addFailedAttempt(replaced.model, "replaced", replaced.reply.usage);
    if (timeouts?.totalMs !== undefined) deadline ??= clock.monotonic() + timeouts.totalMs;
    let fallbackIndex = 0;
    let model = primaryModel;
    for (let failures = 1, retries = 0; ; failures++) {
      const ended = beforeRequest && (await runBeforeRequest(model, request));
      if (failedAttempts.length > 0)
        try {
          await recordRequestedModels(session, task, key, { failedAttempts, nextModel: model.id });
          scope.getSignal().throwIfAborted();
        } catch (error) {
          ended?.(undefined, false);
          throw error;
        }
      let thrown: unknown;
      try {
        const reply = await attemptOnce(model, request);
        answered = { model, reply };
        ended?.(reply.usage, true);
        if (failedAttempts.length > 0) forgetFailedAttempts(session.position, session.journal, task, key);
        const currentNotes = collectNotes();
        return currentNotes === noNotes ? reply : { ...reply, ...currentNotes };
      } catch (error) {
        thrown = error;
      }
      ended?.(getFailureDetails(thrown).usage, true);
      const signal = scope.getSignal();
      if (signal.aborted || scope.isEnded()) throw thrown;
      const kind = getModelFailureKind(thrown) ?? "other";
      const failure = getFailureDetails(thrown);
      const notified = addFailedAttempt(model, kind, failure.usage);
      rememberFailedAttempts(session.position, session.journal, task, { key, attempts: failedAttempts });
      if (notified !== undefined) await notified;
      const isExpired = deadline !== undefined && clock.monotonic() >= deadline;
      const retryMs =
        isExpired || retry === undefined || retries + 1 >= retry.attempts || !canRetry(retry, thrown, kind, failures)
          ? undefined
          : getRetryDelayMs(retry, retries + 1, failure.retryAfterMs, session.env.world.random.next());
      const canRetrySame = retryMs !== undefined && (deadline === undefined || clock.monotonic() + retryMs < deadline);
      let next: Model | undefined = model;
      if (canRetrySame) retries += 1;
      else
        next = isExpired || !shouldFallBack(fallback.on, thrown, kind) ? undefined : fallback.models[fallbackIndex++];
      if (next === undefined) throw addAttemptSummary(thrown, failedAttempts);
      const delayMs = canRetrySame ? retryMs : 0;
      emit(session.events, {
        type: "model.retried",
        node: task.node,
        task: task.id,
        messageId,
        attempt: failedAttempts.length,
        delayMs,
        model: model.id,
        next: next.id,
        kind,
        error: toRedactedRecord(session.env.redactor, thrown),
        ...(failure.usage === undefined ? {} : { usage: failure.usage }),
      });
      await waitWithHeartbeat(session.signals, session.env.world, scope, delayMs);
      model = next;
    }
  };

  const collectNotes = (): AttemptNotes => {
    const fallbackId = answered === undefined || answered.model === primaryModel ? undefined : answered.model.id;
    const attempts = auxiliaryAttempts.length === 0 ? failedAttempts : [...failedAttempts, ...auxiliaryAttempts];
    if (fallbackId === undefined && attempts.length === 0) return noNotes;
    return {
      ...(fallbackId === undefined ? {} : { answeredBy: fallbackId }),
      ...(attempts.length === 0 ? {} : { failedAttempts: [...attempts] }),
    };
  };

  return {
    generate: ask,
    finishMessage: (message) => {
      stream.finish((answered?.model ?? primaryModel).id, message);
      const currentNotes = collectNotes();
      // A hook may have returned the reply of an earlier request.
      if (currentNotes === noNotes && message.answeredBy === undefined && message.failedAttempts === undefined)
        return message;
      const { answeredBy: _answeredBy, failedAttempts: _lost, ...rest } = message;
      return { ...rest, ...currentNotes };
    },
  };
}

/**
 * Waits before the next request. The wait counts as activity for the node's idle timeout. Throws the reason of an
 * aborted signal.
 */
async function waitWithHeartbeat(signals: Signals, world: World, scope: TaskScope, delayMs: number): Promise<void> {
  const { idleTimeoutMs = delayMs * 2 } = scope.node.policy;
  const signal = scope.getSignal();
  for (let remainingMs = delayMs; remainingMs > 0; remainingMs -= idleTimeoutMs / 2) {
    await sleep(signals, world, Math.min(remainingMs, idleTimeoutMs / 2), signal);
    signal.throwIfAborted();
    scope.sendHeartbeat();
  }
  signal.throwIfAborted();
  scope.sendHeartbeat();
}

/** Returns the failure details of a model error; empty for other errors. */
function getFailureDetails(thrown: unknown): Partial<ModelFailure> {
  return isStatewrightError(thrown, "model_failed") && isPlainObject(thrown.details) ? thrown.details : {};
}

/**
 * Returns the last error of a call, with a summary of all failed requests: the first failure may be the most
 * informative.
 */
function addAttemptSummary(thrown: unknown, lost: readonly FailedAttempt[]): unknown {
  if (lost.length < 2 || !isStatewrightError(thrown, "model_failed")) return thrown;
  const summary = lost.map(({ model, kind }) => `${model}: ${kind}`).join(", ");
  return extendError(thrown, `${lost.length} requests were made: ${summary}`, { lost: [...lost] });
}

function canRetry({ on }: ModelRetryPolicy, thrown: unknown, kind: ModelFailureKind, failures: number): boolean {
  if (typeof on === "function") return shouldRetry(on, thrown, failures);
  if (on !== undefined) return getModelFailureKind(thrown) !== undefined && on.includes(kind);
  if (isStatewrightError(thrown)) return getFailureDetails(thrown).retryable === true;
  return !isProgrammingError(thrown);
}

/**
 * Returns the delay in milliseconds before the next request to the same model; undefined when the requested delay
 * exceeds the limit.
 */
function getRetryDelayMs(
  retry: ModelRetryPolicy,
  attempt: number,
  requestedMs: number | undefined,
  random: number,
): number | undefined {
  const { maxRetryAfterMs = defaultMaxRetryAfterMs, on: _on, ...backoff } = retry;
  if (requestedMs !== undefined && requestedMs > maxRetryAfterMs) return undefined;
  return Math.max(computeRetryDelayMs(backoff, attempt, random), requestedMs ?? 0);
}

/**
 * Returns true when a fallback model should be tried after this failure. Programming errors never cause a fallback.
 */
function shouldFallBack(on: readonly ModelFailureKind[] | undefined, thrown: unknown, kind: ModelFailureKind): boolean {
  if (getModelFailureKind(thrown) === undefined) return false;
  return on === undefined ? kind !== "invalid_request" : on.includes(kind);
}
