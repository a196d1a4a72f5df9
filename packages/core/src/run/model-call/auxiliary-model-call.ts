/**
 * Auxiliary model calls of hooks, such as a small model that summarises messages.
 *
 * An auxiliary model call is an effect of its own inside the effect of its hooks: when hooks run again after a crash,
 * the recorded reply is reused and not paid for twice. The reply is not streamed and is no message of the
 * conversation.
 */

import { describeThrown, isStatewrightError, StatewrightError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { deepFreeze, isPlainObject } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import { callPolicyNames, checkCallPolicy, resolveCallPolicy } from "../../model/call-policy.ts";
import type { FailedAttempt } from "../../model/message.ts";
import type { Model, ModelFailure, ModelReply } from "../../model/model.ts";
import { getModelFailureKind } from "../../model/model-failure.ts";
import { type AnyModel, isAnyModel } from "../../model/model-source.ts";
import type { AuxiliaryCall, Middleware } from "../../tool/policy/middleware.ts";
import { emit } from "../events/events.ts";
import { toEffectUsage } from "../journal/effect-attempts.ts";
import { runRecordedEffect } from "../journal/journal.ts";
import { claimHookKey } from "../journal/step-keys.ts";
import { getErrorPlace } from "../session/parts/position.ts";
import { createAttemptKey, notifyFailedAttempt, notifyPreviousAttempts } from "./failed-attempt-hooks.ts";
import type { HookPass } from "./hook-pass.ts";
import type { MessageStream } from "./message-stream.ts";
import { createModelAttempts, findPreviousAttempts } from "./model-attempts.ts";
import { createBeforeRequest } from "./request-hooks.ts";

/** Stream of calls that are no part of the conversation. */
export const discardStream: MessageStream = {
  emitDelta: () => undefined,
  retract: () => undefined,
  finish: () => undefined,
};

/** Calls an auxiliary model. Its usage is emitted, and recorded with the message of the effect that the hooks wrap. */
export async function callAuxiliaryModel(
  hookContext: HookPass,
  middleware: Middleware,
  key: string,
  call: AuxiliaryCall,
): Promise<ModelReply> {
  const { env, position, journal, events, scope, effect } = hookContext;
  const { task } = scope;
  checkAuxiliaryCall(hookContext, middleware, key, call);
  const toModel = (given: AnyModel): Model => env.findModel(given, describeAuxiliaryCall(middleware));
  const { request } = call;
  const model = toModel(call.model);
  const policy = resolveCallPolicy({ ...call, retry: call.retry ?? { attempts: 3 } }, toModel);
  const baseKey = `${effect}:${middleware.name}:${key}`;
  let effectKey = baseKey;
  for (let nth = 2; hookContext.usedIds.has(effectKey); nth++) effectKey = `${baseKey}:${nth}`;
  hookContext.usedIds.add(effectKey);
  claimHookKey(position, scope, effectKey);
  const previous = findPreviousAttempts(position, journal, task, effectKey);
  await notifyPreviousAttempts(hookContext, previous.attempts, (nth) => `${effectKey} ${createAttemptKey(nth)}`);
  const reply = await runRecordedEffect<ModelReply>(hookContext, {
    task,
    key: effectKey,
    kind: "model",
    name: model.id,
    effect: "idempotent",
    getUsage: toEffectUsage,
    execute: () =>
      createModelAttempts(hookContext, scope, {
        primaryModel: model,
        key: effectKey,
        policy,
        previous,
        stream: discardStream,
        onFailedAttempt: (attempt, nth) =>
          notifyFailedAttempt(hookContext, attempt, `${effectKey} ${createAttemptKey(nth)}`),
        beforeRequest: createBeforeRequest(hookContext),
      })
        .generate(request)
        .catch((thrown: unknown) => {
          throw scope.getSignal().aborted ? thrown : toModelFailure(model, thrown);
        }),
    onCommitted: ({ answeredBy = model.id, usage }, reused) => {
      if (reused) return;
      const by = middleware.name;
      const cost = usage === undefined ? {} : { usage };
      emit(events, {
        type: "model.auxiliary_called",
        node: task.node,
        task: task.id,
        by,
        key,
        model: answeredBy,
        ...cost,
      });
    },
  });
  const { answeredBy = model.id, usage, failedAttempts = [] } = reply;
  const auxiliaryAttempt: FailedAttempt = {
    model: answeredBy,
    kind: "auxiliary",
    ...(usage === undefined ? {} : { usage }),
  };
  hookContext.auxiliaryAttempts.push(...failedAttempts, auxiliaryAttempt);
  // Uses the key of a failed attempt: after a crash without a recorded end, hooks are notified under the same key.
  await notifyFailedAttempt(hookContext, auxiliaryAttempt, `${effectKey} ${createAttemptKey(failedAttempts.length)}`);
  scope.sendHeartbeat();
  return deepFreeze(reply);
}

/**
 * Converts the plain error of a client library to `model_failed`, so that a hook tells a failed model from an error of
 * its own. Other errors stay unchanged.
 */
function toModelFailure(model: Model, thrown: unknown): unknown {
  if (isStatewrightError(thrown) || getModelFailureKind(thrown) === undefined) return thrown;
  const details: ModelFailure = { retryable: false, kind: "other" };
  return new StatewrightError("model_failed", {
    what: `the model "${model.id}" failed: ${describeThrown(thrown)}`,
    next: "Fix the cause, or add a fallback",
    details,
    cause: thrown,
  });
}

function describeAuxiliaryCall({ name }: Middleware): string {
  return `the auxiliary model call of the middleware "${name}"`;
}

function checkAuxiliaryCall({ position, scope }: HookPass, middleware: Middleware, key: unknown, call: unknown): void {
  const owner = describeAuxiliaryCall(middleware);
  if (!isPlainObject(call) || !isAnyModel(call["model"]) || !isPlainObject(call["request"]))
    throw invalidOption({
      where: owner,
      expected: "a model and a request",
      got: isPlainObject(call) ? call["model"] : call,
      fix: 'Use ask("key", { model, request: { messages: […], tools: [] } })',
      place: getErrorPlace(position, { node: scope.task.node }),
    });
  checkId("key", key as string);
  checkOptions(owner, call, ["model", "request", ...callPolicyNames]);
  checkCallPolicy(owner, call);
}
