/**
 * The requests of one model call: made again where that may help, then given to the models that stand in. This is the one
 * place that asks a model again: hooks, questions and steps of the node around it are not repeated.
 */
import { isStatewrightError, saidWith } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { retryDelayMs, saysYes } from "../../base/retry.ts";
import {
  fallbackOf,
  longestRetryAfterMs,
  type ModelCallPolicy,
  type ModelRetryPolicy,
} from "../../model/call-policy.ts";
import type { LostAttempt } from "../../model/failed-attempt.ts";
import type { AssistantMessage } from "../../model/message.ts";
import type { Model, ModelFailure, ModelReply, ModelRequest } from "../../model/model.ts";
import { isProgramming, type ModelFailureKind, modelFailureKind } from "../../model/model-failure.ts";
import type { RequestEnded } from "../../tool/policy/middleware.ts";
import { untilAborted } from "../session/abort.ts";
import { recordOf } from "../session/redact-error.ts";
import { pause, type TaskScope } from "../session/scope.ts";
import { emit, type Session } from "../session/session.ts";
import { forgetLost, type LostBefore, recordAsked, rememberLost } from "./failed-attempts.ts";
import { type MessageStream, messageStream } from "./message-stream.ts";
import { type AttemptLimits, attemptModel } from "./model-attempt.ts";
import type { BeforeRequest } from "./request-hooks.ts";

/** What a message says of the requests that were made for it. */
type AttemptNotes = Pick<AssistantMessage, "answeredBy" | "lost">;

/** The requests of one call. */
export interface ModelAttempts {
  /** Ask until a model answers. Asked again, as by a hook, what was answered before is void. */
  readonly ask: (request: ModelRequest) => Promise<ModelReply>;
  /** The message that the answer has become, with what there is to say of its requests. It is told next. */
  readonly settled: (message: AssistantMessage) => AssistantMessage;
}

const silent: AttemptNotes = Object.freeze({});

/** What the requests of a call share with what stands around it. */
export interface AttemptParts {
  /** Where they stream to. */
  readonly stream?: MessageStream;
  /** What hooks have asked of other models; grows until the message is settled. */
  readonly beside?: readonly LostAttempt[];
  /** Told of each request as it is lost, the nth of those that were made for the message. */
  readonly tellLost?: (attempt: LostAttempt, nth: number) => Promise<void>;
  /** Called before each of them goes out. */
  readonly beforeRequest?: BeforeRequest | undefined;
}

/** Begin the requests of a call, by its policy; `before` are those that were made for its message already. */
export function modelAttempts(
  session: Session,
  scope: TaskScope,
  asked: Model,
  key: string,
  policy: ModelCallPolicy,
  before: LostBefore,
  {
    stream = messageStream(session, scope.task, `${scope.task.id}:${key}`),
    beside = [],
    tellLost,
    beforeRequest,
  }: AttemptParts = {},
): ModelAttempts {
  const { task } = scope;
  const { clock } = session.world;
  const { timeouts, retry } = policy;
  const fallback = fallbackOf(policy);
  const messageId = `${task.id}:${key}`;
  const lost: LostAttempt[] = [...before.attempts];
  let answered: { readonly model: Model; readonly reply: ModelReply } | undefined;
  let deadline: number | undefined;

  if (before.unseen) stream.takeBack(before.attempts.at(-1)?.model ?? asked.id, "unrecorded");

  const lose = (model: Model, kind: LostAttempt["kind"], usage: LostAttempt["usage"]): Promise<void> | undefined => {
    const attempt: LostAttempt = { model: model.id, kind, ...(usage === undefined ? {} : { usage }) };
    lost.push(attempt);
    stream.takeBack(model.id, kind);
    // A call that was given up tells of it with the next pass: its hooks are not called any more.
    return kind === "cancelled" ? undefined : tellLost?.(attempt, lost.length - 1);
  };

  const limits = (): AttemptLimits | undefined => {
    if (timeouts === undefined) return undefined;
    return deadline === undefined ? timeouts : { ...timeouts, leftMs: Math.max(0, deadline - clock.monotonic()) };
  };

  /** One request. When its node is given up meanwhile, what it told is void at once: the node may be tried again. */
  const once = (model: Model, request: ModelRequest): Promise<ModelReply> => {
    const { timeoutMs, idleTimeoutMs } = scope.node.policy;
    const heeded = timeoutMs !== undefined || idleTimeoutMs !== undefined || session.events.listening();
    return heeded && !scope.signal().aborted
      ? onceHeeded(model, request)
      : attemptModel(session, scope, model, request, stream, limits());
  };

  const onceHeeded = async (model: Model, request: ModelRequest): Promise<ModelReply> => {
    const stopHeeding = untilAborted(scope.signal(), () => {
      void lose(model, "cancelled", undefined);
      rememberLost(session, task, key, lost);
    });
    try {
      return await attemptModel(session, scope, model, request, stream, limits());
    } finally {
      stopHeeding();
    }
  };

  /** What hooks let a request wait is no time of the call. */
  const heldBack = async (model: Model, request: ModelRequest): Promise<RequestEnded | undefined> => {
    if (beforeRequest === undefined) return undefined;
    const from = clock.monotonic();
    const ended = await beforeRequest(model, request);
    if (deadline !== undefined) deadline += clock.monotonic() - from;
    return ended;
  };

  const ask = async (request: ModelRequest): Promise<ModelReply> => {
    const replaced = answered;
    answered = undefined;
    if (replaced !== undefined) await lose(replaced.model, "replaced", replaced.reply.usage);
    if (timeouts?.totalMs !== undefined) deadline ??= clock.monotonic() + timeouts.totalMs;
    let standsNext = 0;
    let model = asked;
    for (let failures = 1, retries = 0; ; failures++) {
      const ended = beforeRequest && (await heldBack(model, request));
      if (lost.length > 0)
        try {
          await recordAsked(session, task, key, lost, model.id);
          scope.signal().throwIfAborted();
        } catch (error) {
          ended?.(undefined, false);
          throw error;
        }
      let thrown: unknown;
      try {
        const reply = await once(model, request);
        answered = { model, reply };
        ended?.(reply.usage, true);
        if (lost.length > 0) forgetLost(session, task, key);
        const said = notes();
        return said === silent ? reply : { ...reply, ...said };
      } catch (error) {
        thrown = error;
      }
      ended?.(failureOf(thrown).usage, true);
      const signal = scope.signal();
      if (signal.aborted || scope.ended()) throw thrown;
      const kind = modelFailureKind(thrown) ?? "other";
      const failure = failureOf(thrown);
      const told = lose(model, kind, failure.usage);
      rememberLost(session, task, key, lost);
      if (told !== undefined) await told;
      const isOver = deadline !== undefined && clock.monotonic() >= deadline;
      const retryMs =
        isOver || retry === undefined || retries + 1 >= retry.attempts || !mayRetry(retry, thrown, kind, failures)
          ? undefined
          : waitMs(retry, retries + 1, failure.retryAfterMs, session.world.random.next());
      const fits = retryMs !== undefined && (deadline === undefined || clock.monotonic() + retryMs < deadline);
      let next: Model | undefined = model;
      if (fits) retries += 1;
      else next = isOver || !standsIn(fallback.on, thrown, kind) ? undefined : fallback.models[standsNext++];
      if (next === undefined) throw afterAll(thrown, lost);
      const delayMs = fits ? retryMs : 0;
      emit(session, {
        type: "model.retried",
        node: task.node,
        task: task.id,
        messageId,
        attempt: lost.length,
        delayMs,
        model: model.id,
        next: next.id,
        kind,
        error: recordOf(session, thrown),
        ...(failure.usage === undefined ? {} : { usage: failure.usage }),
      });
      await waitAlive(session, scope, delayMs);
      model = next;
    }
  };

  const notes = (): AttemptNotes => {
    const by = answered === undefined || answered.model === asked ? undefined : answered.model.id;
    const spent = beside.length === 0 ? lost : [...lost, ...beside];
    if (by === undefined && spent.length === 0) return silent;
    return { ...(by === undefined ? {} : { answeredBy: by }), ...(spent.length === 0 ? {} : { lost: [...spent] }) };
  };

  return {
    ask,
    settled: (message) => {
      stream.settle((answered?.model ?? asked).id, message);
      const said = notes();
      // A hook may have answered with a reply that was given to another request.
      if (said === silent && message.answeredBy === undefined && message.lost === undefined) return message;
      const { answeredBy: _answeredBy, lost: _lost, ...own } = message;
      return { ...own, ...said };
    },
  };
}

/** Wait for a further request. That is no silence: a node that must give signs of life does. Throws the reason of a signal that fires. */
async function waitAlive(session: Session, scope: TaskScope, delayMs: number): Promise<void> {
  const { idleTimeoutMs = delayMs * 2 } = scope.node.policy;
  const signal = scope.signal();
  for (let leftMs = delayMs; leftMs > 0; leftMs -= idleTimeoutMs / 2) {
    await pause(session, Math.min(leftMs, idleTimeoutMs / 2), signal);
    signal.throwIfAborted();
    scope.beat();
  }
  signal.throwIfAborted();
  scope.beat();
}

/** What the details of a failure say of it. */
function failureOf(thrown: unknown): Partial<ModelFailure> {
  return isStatewrightError(thrown, "model_failed") && isPlainObject(thrown.details) ? thrown.details : {};
}

/** The last failure of a call, telling of the requests before it too: the first may say more about what to mend. */
function afterAll(thrown: unknown, lost: readonly LostAttempt[]): unknown {
  if (lost.length < 2 || !isStatewrightError(thrown, "model_failed")) return thrown;
  const told = lost.map(({ model, kind }) => `${model}: ${kind}`).join(", ");
  return saidWith(thrown, `${lost.length} requests were made: ${told}`, { lost: [...lost] });
}

function mayRetry({ on }: ModelRetryPolicy, thrown: unknown, kind: ModelFailureKind, failures: number): boolean {
  if (typeof on === "function") return saysYes(on, thrown, failures);
  if (on !== undefined) return modelFailureKind(thrown) !== undefined && on.includes(kind);
  if (isStatewrightError(thrown)) return failureOf(thrown).retryable === true;
  return !isProgramming(thrown);
}

/** How long to wait before the same model is asked again; undefined when it asks for more time than there is. */
function waitMs(
  retry: ModelRetryPolicy,
  attempt: number,
  wanted: number | undefined,
  chance: number,
): number | undefined {
  const { maxRetryAfterMs = longestRetryAfterMs, on: _on, ...backoff } = retry;
  if (wanted !== undefined && wanted > maxRetryAfterMs) return undefined;
  return Math.max(retryDelayMs(backoff, attempt, chance), wanted ?? 0);
}

/** Whether another model is asked after this failure. A mistake in the program is no model's failure. */
function standsIn(on: readonly ModelFailureKind[] | undefined, thrown: unknown, kind: ModelFailureKind): boolean {
  if (modelFailureKind(thrown) === undefined) return false;
  return on === undefined ? kind !== "invalid_request" : on.includes(kind);
}
