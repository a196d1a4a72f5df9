/**
 * How a model is asked: limits of time, retries, and models that stand in. All of it happens in one place, inside the recorded
 * call, so that no two of them multiply: a call makes `retry.attempts` requests and one more for each fallback, at most.
 */
import { StatewrightError } from "../base/errors.ts";
import { describeValue, isPlainObject } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import { checkRetry, type RetryPolicy } from "../base/retry.ts";
import { isModel, type Model } from "./model.ts";
import { isModelFailureKind, type ModelFailureKind, modelFailureKinds } from "./model-failure.ts";

/** Limits in milliseconds; without one the call waits for ever. */
export interface ModelTimeouts {
  /** From a request to the first part of its answer. A model that does not stream has its whole answer as its first part. */
  readonly firstTokenMs?: number;
  /** Between two parts of an answer. A sign of life without content, such as a provider's ping, counts as one. */
  readonly idleMs?: number;
  /** Of the whole call, with its retries, their waits and its fallbacks. */
  readonly totalMs?: number;
}

/** How often and when a failed request is made again. */
export interface ModelRetryPolicy
  extends RetryPolicy<readonly ModelFailureKind[] | ((error: unknown, attempt: number) => boolean)> {
  /** A wait that the provider asks for, and that is longer than this, is not waited: the next fallback is asked, or the call fails. Default 60,000. */
  readonly maxRetryAfterMs?: number;
}

/** The models that are asked, in their order, when the one before has failed for good. */
export interface ModelFallback<AnyModel = Model> {
  readonly models: readonly AnyModel[];
  /** After which kinds of failure. Default: all but `invalid_request`. */
  readonly on?: readonly ModelFailureKind[];
}

/** What may be said of a model call beside its request. */
export interface ModelCallPolicy<AnyModel = Model> {
  readonly timeouts?: ModelTimeouts | undefined;
  readonly retry?: ModelRetryPolicy | undefined;
  readonly fallback?: readonly AnyModel[] | ModelFallback<AnyModel> | undefined;
}

/** The parts of a policy. */
export const callPolicyNames: readonly (keyof ModelCallPolicy)[] = ["timeouts", "retry", "fallback"];

/** The longest wait that a provider may ask for where the policy says nothing else, in milliseconds. */
export const longestRetryAfterMs = 60_000;

const timeoutNames = optionNames<ModelTimeouts>({ firstTokenMs: true, idleMs: true, totalMs: true });
const fallbackNames = optionNames<ModelFallback>({ models: true, on: true });

/** What was found in order need not be looked at again: an agent says the same at each of its calls. */
const inOrder: WeakSet<object> = new WeakSet();

/** Throws `invalid_option` for a policy that cannot be meant. */
export function checkCallPolicy(owner: string, { timeouts, retry, fallback }: ModelCallPolicy): void {
  if (timeouts !== undefined) once(timeouts, () => checkTimeouts(owner, timeouts));
  if (retry !== undefined) once(retry, () => checkModelRetry(owner, retry));
  if (fallback !== undefined) once(fallback, () => checkFallback(owner, fallback));
}

/** Throws `invalid_option` where two in one place say the same part: only one of them would count. */
export function refuseSaidTwice(
  owner: string,
  said: readonly (readonly [by: string, policy: ModelCallPolicy])[],
): void {
  for (const part of callPolicyNames) {
    const [first, second] = said.filter(([, policy]) => policy[part] !== undefined);
    if (first === undefined || second === undefined) continue;
    throw new StatewrightError("invalid_option", {
      what: `${owner} says ${part} of its model calls twice: by ${first[0]} and by ${second[0]}`,
      next: "Leave one of them out: both would not add up",
    });
  }
}

function once(part: unknown, check: () => void): void {
  if (typeof part === "object" && part !== null) {
    if (inOrder.has(part)) return;
    check();
    inOrder.add(part);
  } else check();
}

function checkTimeouts(owner: string, timeouts: ModelTimeouts): void {
  checkOptions(`the timeouts of ${owner}`, timeouts, timeoutNames);
  for (const [name, ms] of Object.entries(timeouts))
    if (!(ms === undefined || (typeof ms === "number" && ms > 0)))
      throw unfit(`${name} of ${owner}`, ms, "a number of milliseconds above 0, or leave it out");
}

function checkModelRetry(owner: string, retry: ModelRetryPolicy): void {
  if (!isPlainObject(retry)) throw unfit(`the retry of ${owner}`, retry, "a policy, such as { attempts: 3 }");
  const { on, maxRetryAfterMs, ...policy } = retry;
  checkRetry(owner, policy);
  if (on !== undefined && typeof on !== "function") checkKinds(`on of the retry of ${owner}`, on);
  if (maxRetryAfterMs !== undefined && !(typeof maxRetryAfterMs === "number" && maxRetryAfterMs >= 0))
    throw unfit(`maxRetryAfterMs of ${owner}`, maxRetryAfterMs, "a number of milliseconds from 0");
}

function checkFallback(owner: string, fallback: NonNullable<ModelCallPolicy["fallback"]>): void {
  const models: unknown = Array.isArray(fallback) ? fallback : modelsIn(owner, fallback as ModelFallback);
  const wanted = "a list of models, or { models: [model, …], on: [kind, …] }";
  if (!Array.isArray(models)) throw unfit(`the fallback of ${owner}`, models, wanted);
  for (const model of models) if (!isModel(model)) throw unfit(`a fallback of ${owner}`, model, wanted);
}

function modelsIn(owner: string, fallback: ModelFallback): unknown {
  checkOptions(`the fallback of ${owner}`, fallback, fallbackNames);
  if (fallback.on !== undefined) checkKinds(`on of the fallback of ${owner}`, fallback.on);
  return fallback.models;
}

function checkKinds(what: string, kinds: unknown): void {
  const wanted = `a list of kinds of failure: ${modelFailureKinds.join(", ")}`;
  if (!Array.isArray(kinds)) throw unfit(what, kinds, wanted);
  for (const kind of kinds) if (!isModelFailureKind(kind)) throw unfit(what, kind, wanted);
}

function unfit(what: string, given: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `${what} is ${describeValue(given)}`, next: `Give ${wanted}` });
}

/** The models that stand in, in their order, and the kinds of failure after which they do. */
export function fallbackOf({ fallback }: ModelCallPolicy): {
  readonly models: readonly Model[];
  readonly on: readonly ModelFailureKind[] | undefined;
} {
  if (fallback === undefined) return noFallback;
  return isList(fallback) ? { models: fallback, on: undefined } : { models: fallback.models, on: fallback.on };
}

const noFallback = { models: [], on: undefined };

function isList(fallback: NonNullable<ModelCallPolicy["fallback"]>): fallback is readonly Model[] {
  return Array.isArray(fallback);
}
