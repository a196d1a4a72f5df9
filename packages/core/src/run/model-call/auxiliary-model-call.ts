/**
 * A model that a hook asks besides, such as a small one that summarises. It is an effect of its own inside the one that the
 * hooks stand around: when that is done again after a crash, this answer is not paid for twice. It streams to nobody and is
 * no message of the conversation.
 */
import { StatewrightError } from "../../base/errors.ts";
import { checkId } from "../../base/ids.ts";
import { deepFreeze, describeValue, isPlainObject } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import { callPolicyNames, checkCallPolicy } from "../../model/call-policy.ts";
import type { LostAttempt } from "../../model/failed-attempt.ts";
import { isModel, type ModelReply } from "../../model/model.ts";
import type { BesideCall, Middleware } from "../../tool/policy/middleware.ts";
import { perform } from "../journal/journal.ts";
import { emit, placeOf } from "../session/session.ts";
import { takeForHooks } from "../session/step-keys.ts";
import { lostKey, tellLost, tellLostBefore } from "./failed-attempt-hooks.ts";
import { lostBefore } from "./failed-attempts.ts";
import type { HooksAtWork } from "./hook-runtime.ts";
import type { MessageStream } from "./message-stream.ts";
import { modelAttempts } from "./model-attempts.ts";
import { beforeRequests } from "./request-hooks.ts";

const silent: MessageStream = { tell: () => undefined, takeBack: () => undefined, settle: () => undefined };

/** Ask a model besides. What it cost is told, and stands with the message that the hooks stand around. */
export async function askBeside(
  at: HooksAtWork,
  middleware: Middleware,
  key: string,
  call: BesideCall,
): Promise<ModelReply> {
  const { session, scope, effect } = at;
  const { task } = scope;
  checkBeside(at, middleware, key, call);
  const { model, request, ...policy } = call;
  const own = `${effect}:${middleware.name}:${key}`;
  let place = own;
  for (let nth = 2; at.asked.has(place); nth++) place = `${own}:${nth}`;
  at.asked.add(place);
  takeForHooks(session, scope, place);
  const before = lostBefore(session, task, place);
  await tellLostBefore(at, before.attempts, (nth) => `${place} ${lostKey(nth)}`);
  const reply = await perform<ModelReply>(session, {
    task,
    key: place,
    kind: "model",
    name: model.id,
    effect: "idempotent",
    execute: () =>
      modelAttempts(session, scope, model, place, { retry: { attempts: 3 }, ...policy }, before, {
        stream: silent,
        tellLost: (attempt, nth) => tellLost(at, attempt, `${place} ${lostKey(nth)}`),
        beforeRequest: beforeRequests(at),
      }).ask(request),
    settled: ({ answeredBy = model.id, usage }, reused) => {
      if (reused) return;
      const by = middleware.name;
      const cost = usage === undefined ? {} : { usage };
      emit(session, {
        type: "model.asked_beside",
        node: task.node,
        task: task.id,
        by,
        key,
        model: answeredBy,
        ...cost,
      });
    },
  });
  const { answeredBy = model.id, usage, lost = [] } = reply;
  const paid: LostAttempt = { model: answeredBy, kind: "beside", ...(usage === undefined ? {} : { usage }) };
  at.beside.push(...lost, paid);
  // Under the key that it would have as a lost request: that is how it is told of where its end was not recorded.
  await tellLost(at, paid, `${place} ${lostKey(lost.length)}`);
  scope.beat();
  return deepFreeze(reply);
}

function checkBeside({ session, scope }: HooksAtWork, { name }: Middleware, key: unknown, call: unknown): void {
  const owner = `the model that the middleware "${name}" asks besides`;
  if (!isPlainObject(call) || !isModel(call["model"]) || !isPlainObject(call["request"]))
    throw new StatewrightError("invalid_option", {
      what: `${owner} is ${describeValue(isPlainObject(call) ? call["model"] : call)}, or is given no request`,
      next: 'Give ask("key", { model, request: { messages: […], tools: [] } })',
      place: placeOf(session, { node: scope.task.node }),
    });
  checkId("key", key as string);
  checkOptions(owner, call, ["model", "request", ...callPolicyNames]);
  checkCallPolicy(owner, call);
}
