/**
 * `generate` of a tool: a recorded effect inside the call. The answer is not part of the conversation and does not
 * stream; its usage belongs to the result of the call.
 */
import { deepFreeze } from "../../base/json.ts";
import { resolveCallPolicy } from "../../model/call-policy.ts";
import type { AssistantMessage, FailedAttempt } from "../../model/message.ts";
import type { Model } from "../../model/model.ts";
import type { AnyModel } from "../../model/model-source.ts";
import { listMessageUsage, sumTokenCounts } from "../../model/sum-token-counts.ts";
import type { Generate, GenerateRequest } from "../../tool/definition/generate.ts";
import type { ToolResult } from "../../tool/result.ts";
import { emit } from "../events/events.ts";
import { toEffectUsage } from "../journal/effect-attempts.ts";
import { runRecordedEffect } from "../journal/journal.ts";
import { claimHookKey } from "../journal/step-keys.ts";
import { discardStream } from "../model-call/auxiliary-model-call.ts";
import { createAttemptKey, notifyFailedAttempt, notifyPreviousAttempts } from "../model-call/failed-attempt-hooks.ts";
import { parseQuestion, type Question, toGenerated } from "../model-call/generate.ts";
import { createHookPass, releaseReservations } from "../model-call/hook-runtime.ts";
import { createModelAttempts, findPreviousAttempts } from "../model-call/model-attempts.ts";
import { redactReply } from "../model-call/model-call.ts";
import { sendReviewed } from "../model-call/reply-review.ts";
import { createBeforeRequest } from "../model-call/request-hooks.ts";
import { createMessageId } from "../session/parts/position.ts";
import type { TaskScope } from "../session/scope.ts";
import { listCallMiddleware, type ToolCallContext } from "./context.ts";

/** An attempt of the tool: its signal, and whether it is still active. */
interface CallAttempt {
  readonly signal: AbortSignal;
  readonly isOpen: () => boolean;
}

/** Creates `generate` for a single attempt of a tool. */
export function createCallGenerate(call: ToolCallContext, attempt: CallAttempt): Generate {
  const usedKeys = new Set<string>();
  return (async (request: GenerateRequest<unknown>) => {
    attempt.signal.throwIfAborted();
    const question = parseQuestion(call.env, `the tool "${call.block.name}"`, request);
    let key = `${call.key}/${question.key}`;
    for (let nth = 2; usedKeys.has(key); nth++) key = `${call.key}/${question.key}:${nth}`;
    usedKeys.add(key);
    claimHookKey(call.position, call.scope, key);
    const message = await askModel(call, attempt, question, key);
    call.modelUsage ??= new Map();
    call.modelUsage.set(key, sumTokenCounts(listMessageUsage(message)));
    return toGenerated(question, message);
  }) as Generate;
}

/** Adds the usage of the call's own questions to its result. */
export function addModelUsage({ modelUsage }: ToolCallContext, result: ToolResult): ToolResult {
  if (modelUsage === undefined) return result;
  const usage = sumTokenCounts([result.usage, ...modelUsage.values()]);
  return usage === undefined ? result : { ...result, usage };
}

async function askModel(
  call: ToolCallContext,
  { signal, isOpen }: CallAttempt,
  { where, model: given, request, policy: givenPolicy, review, key: name }: Question,
  key: string,
): Promise<AssistantMessage> {
  const { env, position, journal, events } = call;
  const { task } = call.scope;
  const toModel = (each: AnyModel): Model => env.findModel(each, where);
  const model = toModel(given);
  const policy = resolveCallPolicy(givenPolicy, toModel);
  const scope = createAttemptScope(call.scope, signal, isOpen);
  const pass = createHookPass(call, call.scope, key, { phase: "sent", middleware: listCallMiddleware(call) });
  const previous = findPreviousAttempts(position, journal, task, key);
  await notifyPreviousAttempts(pass, previous.attempts, (nth) => `${key} ${createAttemptKey(nth)}`);
  const message = await runRecordedEffect<AssistantMessage>(call, {
    task,
    key,
    kind: "model",
    name: model.id,
    effect: "idempotent",
    getUsage: toEffectUsage,
    execute: async () => {
      const attempts = createModelAttempts(call, scope, {
        primaryModel: model,
        key,
        policy,
        previous,
        stream: discardStream,
        onFailedAttempt: (failed, nth) => notifyFailedAttempt(pass, failed, `${key} ${createAttemptKey(nth)}`),
        beforeRequest: createBeforeRequest(pass),
      });
      const reply = redactReply(env.redactor, await sendReviewed(attempts.generate, request, review));
      return attempts.finishMessage({ ...reply, role: "assistant", id: createMessageId(position, task, key) });
    },
    onCommitted: ({ answeredBy = model.id, usage }, reused) => {
      if (reused) return;
      const cost = usage === undefined ? {} : { usage };
      const from = { node: task.node, task: task.id, by: call.block.name, key: name };
      emit(events, { type: "model.auxiliary_called", ...from, model: answeredBy, ...cost });
    },
  }).finally(() => releaseReservations(pass));
  const { answeredBy = model.id, usage, failedAttempts = [] } = message;
  const answered: FailedAttempt = { model: answeredBy, kind: "auxiliary", ...(usage === undefined ? {} : { usage }) };
  await notifyFailedAttempt(pass, answered, `${key} ${createAttemptKey(failedAttempts.length)}`);
  scope.sendHeartbeat();
  return deepFreeze(message);
}

/** Scope of an attempt: its signal ends the requests, and a late answer is ignored. */
function createAttemptScope(scope: TaskScope, signal: AbortSignal, isOpen: () => boolean): TaskScope {
  const parts: PropertyDescriptorMap = {
    getSignal: { value: () => signal },
    isEnded: { value: () => !isOpen() || scope.isEnded() },
  };
  return Object.create(scope, parts) as TaskScope;
}
