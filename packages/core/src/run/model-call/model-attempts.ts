/**
 * The requests of a model call: retries, then fallback models. Model requests are retried only here: hooks,
 * interrupts and steps of the node are not repeated. The failed requests of a call are remembered in this process, and
 * the requested models are journaled.
 */

import { extendError, isStatewrightError } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { computeRetryDelayMs, shouldRetry } from "../../base/retry.ts";
import type { World } from "../../base/world.ts";
import type { Task } from "../../checkpoint/checkpoint.ts";
import { isInFlight } from "../../checkpoint/journal.ts";
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
import { emit } from "../events/events.ts";
import { openAttempt, recordAttemptFailure, toKnownUsage } from "../journal/effect-attempts.ts";
import { addAbortListener } from "../session/abort.ts";
import type { Journal } from "../session/parts/journal.ts";
import { awaitDurable, commitEffect, toJournalKey } from "../session/parts/persistence.ts";
import { createMessageId, type Position } from "../session/parts/position.ts";
import type { Signals } from "../session/parts/signals.ts";
import { toRedactedRecord } from "../session/redact-error.ts";
import { sleep, type TaskScope } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { createMessageStream, type MessageStream } from "./message-stream.ts";
import { type AttemptLimits, attemptModel } from "./model-attempt.ts";
import type { BeforeRequest } from "./request-hooks.ts";

/** Fields of a message about its requests. */
type AttemptNotes = Pick<AssistantMessage, "answeredBy" | "failedAttempts">;

/** The requests of a model call. */
export interface ModelAttempts {
  /** Requests until a model replies. A repeated call, e.g. by a hook, retracts the previous reply. */
  readonly generate: (request: ModelRequest) => Promise<ModelReply>;
  /**
   * Finishes the stream and returns the message with the fields about its requests. The caller emits the message
   * next.
   */
  readonly finishMessage: (message: AssistantMessage) => AssistantMessage;
  /** Returns true if a request has got a reply. A hook may give the message without any request. */
  readonly hasReply: () => boolean;
}

const noNotes: AttemptNotes = Object.freeze({});

/** Requests of a call: the model, the policy, the attempts already made, and parts shared with its hooks. */
export interface AttemptParts {
  readonly primaryModel: Model;
  readonly key: string;
  readonly policy: ModelCallPolicy<Model>;
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

/** Parts of the session that model requests use. */
type RequestParts = Pick<Session, "env" | "position" | "events" | "journal" | "signals">;

/** Creates the requests of a call by its policy; `previous` are the attempts already made for its message. */
export function createModelAttempts(session: RequestParts, scope: TaskScope, parts: AttemptParts): ModelAttempts {
  const requests = new ModelRequests(session, scope, parts);
  return {
    generate: (request) => requests.generate(request),
    finishMessage: (message) => requests.finishMessage(message),
    hasReply: () => requests.hasReply(),
  };
}

/** Position in the policy: the retries of the current model, and the next fallback model. */
interface PolicyPosition {
  retries: number;
  fallbackIndex: number;
}

/** A failed request. */
interface FailedRequest {
  readonly thrown: unknown;
  readonly kind: ModelFailureKind;
  readonly details: Partial<ModelFailure>;
  /** Number of failed requests since the call of `generate`. */
  readonly failures: number;
}

/** The requests of a model call: retries of a model, then its fallback models. */
class ModelRequests {
  readonly #session: RequestParts;
  readonly #scope: TaskScope;
  readonly #parts: AttemptParts;
  readonly #stream: MessageStream;
  readonly #failedAttempts: FailedAttempt[];
  #answered: { readonly model: Model; readonly reply: ModelReply } | undefined;
  /** End of `timeouts.totalMs` on the monotonic clock. */
  #deadline: number | undefined;

  constructor(session: RequestParts, scope: TaskScope, parts: AttemptParts) {
    const { task } = scope;
    const { key, previous, primaryModel } = parts;
    this.#session = session;
    this.#scope = scope;
    this.#parts = parts;
    this.#failedAttempts = [...previous.attempts];
    const messageId = createMessageId(session.position, task, key);
    this.#stream = parts.stream ?? createMessageStream(session.events, session.env.redactor, task, messageId);
    if (previous.isFromOtherProcess)
      this.#stream.retract(previous.attempts.at(-1)?.model ?? primaryModel.id, "unrecorded");
  }

  async generate(request: ModelRequest): Promise<ModelReply> {
    const { env, position, journal } = this.#session;
    const { primaryModel, key, policy, beforeRequest } = this.#parts;
    const replaced = this.#answered;
    this.#answered = undefined;
    if (replaced !== undefined) await this.#addFailedAttempt(replaced.model, "replaced", replaced.reply.usage);
    if (policy.timeouts?.totalMs !== undefined)
      this.#deadline ??= env.world.clock.monotonic() + policy.timeouts.totalMs;
    const place: PolicyPosition = { retries: 0, fallbackIndex: 0 };
    let model = primaryModel;
    for (let failures = 1; ; failures++) {
      const ended = beforeRequest && (await this.#callBeforeRequest(beforeRequest, model, request));
      if (this.#failedAttempts.length > 0) await this.#recordNextModel(model, ended);
      let thrown: unknown;
      try {
        return this.#acceptReply(model, await this.#attempt(model, request), ended);
      } catch (error) {
        thrown = error;
      }
      const details = getFailureDetails(thrown);
      ended?.(details.usage, true);
      if (this.#scope.getSignal().aborted || this.#scope.isEnded()) throw thrown;
      const kind = getModelFailureKind(thrown) ?? "other";
      const notified = this.#addFailedAttempt(model, kind, details.usage);
      rememberFailedAttempts(position, journal, this.#scope.task, { key, attempts: this.#failedAttempts });
      if (notified !== undefined) await notified;
      const failed: FailedRequest = { thrown, kind, details, failures };
      const next = this.#chooseNext(model, failed, place);
      if (next === undefined) throw addAttemptSummary(thrown, this.#failedAttempts);
      this.#emitRetried(model, failed, next);
      await waitWithHeartbeat(this.#session.signals, env.world, this.#scope, next.delayMs);
      model = next.model;
    }
  }

  hasReply(): boolean {
    return this.#answered !== undefined;
  }

  finishMessage(message: AssistantMessage): AssistantMessage {
    this.#stream.finish((this.#answered?.model ?? this.#parts.primaryModel).id, message);
    const notes = this.#collectNotes();
    // A hook may have returned the reply of an earlier request.
    if (notes === noNotes && message.answeredBy === undefined && message.failedAttempts === undefined) return message;
    const { answeredBy: _answeredBy, failedAttempts: _lost, ...rest } = message;
    return { ...rest, ...notes };
  }

  #addFailedAttempt(
    model: Model,
    kind: FailedAttempt["kind"],
    usage: FailedAttempt["usage"],
  ): Promise<void> | undefined {
    const attempt: FailedAttempt = { model: model.id, kind, ...(usage === undefined ? {} : { usage }) };
    this.#failedAttempts.push(attempt);
    const { position, journal } = this.#session;
    recordAttemptFailure(journal.saved, toJournalKey(position.step, this.#scope.task.id, this.#parts.key), {
      error: kind,
      endedAt: journal.world.clock.now(),
      model: model.id,
      usage: toKnownUsage(usage),
    });
    this.#stream.retract(model.id, kind);
    // An abandoned call calls no more hooks: the next pass reports the attempt.
    return kind === "cancelled" ? undefined : this.#parts.onFailedAttempt?.(attempt, this.#failedAttempts.length - 1);
  }

  /** Calls the hooks before a request. Time spent in hooks does not count towards the total timeout. */
  async #callBeforeRequest(
    beforeRequest: BeforeRequest,
    model: Model,
    request: ModelRequest,
  ): Promise<RequestEndListener> {
    const { clock } = this.#session.env.world;
    const from = clock.monotonic();
    const ended = await beforeRequest(model, request);
    if (this.#deadline !== undefined) this.#deadline += clock.monotonic() - from;
    return ended;
  }

  /** Journals the model of the next request. Throws the abort reason when the task was aborted meanwhile. */
  async #recordNextModel(model: Model, ended: RequestEndListener | undefined): Promise<void> {
    const failedAttempts = this.#failedAttempts;
    try {
      await recordRequestedModels(this.#session, this.#scope.task, this.#parts.key, {
        failedAttempts,
        nextModel: model.id,
      });
      this.#scope.getSignal().throwIfAborted();
    } catch (error) {
      ended?.(undefined, false);
      throw error;
    }
  }

  /**
   * Makes a single request. When its node is abandoned, retracts the streamed text at once, because the node may be
   * retried.
   */
  #attempt(model: Model, request: ModelRequest): Promise<ModelReply> {
    const { timeoutMs, idleTimeoutMs } = this.#scope.node.policy;
    const { events } = this.#session;
    const mustWatch = timeoutMs !== undefined || idleTimeoutMs !== undefined || events.stream.hasReaders();
    return mustWatch && !this.#scope.getSignal().aborted
      ? this.#attemptWatched(model, request)
      : this.#send(model, request);
  }

  async #attemptWatched(model: Model, request: ModelRequest): Promise<ModelReply> {
    const { position, journal } = this.#session;
    const stopWatching = addAbortListener(this.#scope.getSignal(), () => {
      void this.#addFailedAttempt(model, "cancelled", undefined);
      rememberFailedAttempts(position, journal, this.#scope.task, {
        key: this.#parts.key,
        attempts: this.#failedAttempts,
      });
    });
    try {
      return await this.#send(model, request);
    } finally {
      stopWatching();
    }
  }

  #send(model: Model, request: ModelRequest): Promise<ModelReply> {
    const { position, events } = this.#session;
    return attemptModel(position, events, this.#scope, {
      model,
      request,
      stream: this.#stream,
      limits: this.#getLimits(),
    });
  }

  #getLimits(): AttemptLimits | undefined {
    const { timeouts } = this.#parts.policy;
    if (timeouts === undefined || this.#deadline === undefined) return timeouts;
    return { ...timeouts, remainingMs: Math.max(0, this.#deadline - this.#session.env.world.clock.monotonic()) };
  }

  #acceptReply(model: Model, reply: ModelReply, ended: RequestEndListener | undefined): ModelReply {
    const { position, journal } = this.#session;
    this.#answered = { model, reply };
    ended?.(reply.usage, true);
    if (this.#failedAttempts.length > 0) forgetFailedAttempts(position, journal, this.#scope.task, this.#parts.key);
    const notes = this.#collectNotes();
    return notes === noNotes ? reply : { ...reply, ...notes };
  }

  /** Chooses the next request: a retry of the same model, then a fallback model; undefined when the policy ends. */
  #chooseNext(
    model: Model,
    { thrown, kind, details, failures }: FailedRequest,
    place: PolicyPosition,
  ): { readonly model: Model; readonly delayMs: number } | undefined {
    const { clock, random } = this.#session.env.world;
    const { policy } = this.#parts;
    const { retry } = policy;
    const isExpired = this.#deadline !== undefined && clock.monotonic() >= this.#deadline;
    const retryMs =
      isExpired ||
      retry === undefined ||
      place.retries + 1 >= retry.attempts ||
      !canRetry(retry, thrown, kind, failures)
        ? undefined
        : getRetryDelayMs(retry, place.retries + 1, details.retryAfterMs, random.next());
    if (retryMs !== undefined && (this.#deadline === undefined || clock.monotonic() + retryMs < this.#deadline)) {
      place.retries += 1;
      return { model, delayMs: retryMs };
    }
    const fallback = resolveFallback(policy);
    if (isExpired || !shouldFallBack(fallback.on, thrown, kind)) return undefined;
    const next = fallback.models[place.fallbackIndex++];
    return next === undefined ? undefined : { model: next, delayMs: 0 };
  }

  #emitRetried(
    model: Model,
    { thrown, kind, details: { usage } }: FailedRequest,
    next: { readonly model: Model; readonly delayMs: number },
  ): void {
    const { events, env, position } = this.#session;
    const { task } = this.#scope;
    emit(events, {
      type: "model.retried",
      node: task.node,
      task: task.id,
      messageId: createMessageId(position, task, this.#parts.key),
      attempt: this.#failedAttempts.length,
      delayMs: next.delayMs,
      model: model.id,
      next: next.model.id,
      kind,
      error: toRedactedRecord(env.redactor, thrown),
      ...(usage === undefined ? {} : { usage }),
    });
  }

  #collectNotes(): AttemptNotes {
    const { primaryModel, auxiliaryAttempts = [] } = this.#parts;
    const answered = this.#answered;
    const fallbackId = answered === undefined || answered.model === primaryModel ? undefined : answered.model.id;
    const failed = this.#failedAttempts;
    const attempts = auxiliaryAttempts.length === 0 ? failed : [...failed, ...auxiliaryAttempts];
    if (fallbackId === undefined && attempts.length === 0) return noNotes;
    return {
      ...(fallbackId === undefined ? {} : { answeredBy: fallbackId }),
      ...(attempts.length === 0 ? {} : { failedAttempts: [...attempts] }),
    };
  }
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
function addAttemptSummary(thrown: unknown, failedAttempts: readonly FailedAttempt[]): unknown {
  if (failedAttempts.length < 2 || !isStatewrightError(thrown, "model_failed")) return thrown;
  const summary = failedAttempts.map(({ model, kind }) => `${model}: ${kind}`).join(", ");
  return extendError(thrown, `${failedAttempts.length} requests were made: ${summary}`, {
    failedAttempts: [...failedAttempts],
  });
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

/** Failed requests in this process, by journal key. A retry of the node reads them. */
const attemptsBySession: WeakMap<Journal, Map<string, readonly FailedAttempt[]>> = new WeakMap();

/** Separator of model ids in the stage of a row; a comma inside an id is escaped. */
const separator = ", ";

function joinModels(models: readonly string[]): string {
  return models.map((model) => model.replaceAll("%", "%25").replaceAll(",", "%2C")).join(separator);
}

function splitModels(stage: string): readonly string[] {
  return stage.split(separator).map((model) => model.replaceAll("%2C", ",").replaceAll("%25", "%"));
}

/**
 * Requests made for a message before the current call; `isFromOtherProcess` is true when another process made the
 * requests.
 */
export interface PreviousAttempts {
  readonly attempts: readonly FailedAttempt[];
  readonly isFromOtherProcess: boolean;
}

const noAttempts: PreviousAttempts = { attempts: [], isFromOtherProcess: false };

/** Finds previous attempts. Call before the model call starts, because the call adds a journal row of its own. */
export function findPreviousAttempts(position: Position, records: Journal, task: Task, key: string): PreviousAttempts {
  const sessionAttempts = attemptsBySession.get(records);
  const journal = records.saved?.rows;
  if (sessionAttempts === undefined && (journal === undefined || journal.size === 0)) return noAttempts;
  const rowKey = toJournalKey(position.step, task.id, key);
  const remembered = sessionAttempts?.get(rowKey);
  if (remembered !== undefined) return { attempts: remembered, isFromOtherProcess: false };
  const row = journal?.get(rowKey);
  if (row === undefined || !isInFlight(row)) return noAttempts;
  const models = row.stage === undefined ? [row.name] : splitModels(row.stage);
  return { attempts: models.map((model) => ({ model, kind: "unrecorded" })), isFromOtherProcess: true };
}

/** Remembers the failed attempts of a call, with their usage. */
function rememberFailedAttempts(
  position: Position,
  journal: Journal,
  task: Task,
  { key, attempts }: { readonly key: string; readonly attempts: readonly FailedAttempt[] },
): void {
  const sessionAttempts = attemptsBySession.get(journal) ?? new Map<string, readonly FailedAttempt[]>();
  attemptsBySession.set(journal, sessionAttempts.set(toJournalKey(position.step, task.id, key), attempts));
}

/** Forgets the failed attempts: the completed message contains them. */
function forgetFailedAttempts(position: Position, journal: Journal, task: Task, key: string): void {
  attemptsBySession.get(journal)?.delete(toJournalKey(position.step, task.id, key));
}

/**
 * Journals the ids of all requested models, including the next model, before its request is sent, so that a crash
 * hides no request. The first request needs no write: the row of the call itself is written concurrently.
 */
function recordRequestedModels(
  session: Pick<Session, "position" | "journal" | "signals">,
  task: Task,
  key: string,
  { failedAttempts, nextModel }: { readonly failedAttempts: readonly FailedAttempt[]; readonly nextModel: string },
): Promise<void> {
  const { saved, world } = session.journal;
  const row = saved?.rows.get(toJournalKey(session.position.step, task.id, key));
  if (saved === undefined || row === undefined || !isInFlight(row) || session.signals.abort.signal.aborted)
    return Promise.resolve();
  const stage = joinModels([...failedAttempts.map(({ model }) => model), nextModel]);
  return awaitDurable((onCommitted) =>
    commitEffect(saved, {
      row: { ...openAttempt(row, world.clock.now(), nextModel), stage, attempts: failedAttempts.length },
      onCommitted,
    }),
  );
}
