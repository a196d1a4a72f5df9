/**
 * Policy of model calls: timeouts, retries and fallback models. All three apply in a single place, inside the recorded
 * call, so they do not multiply: a call makes at most `retry.attempts` requests and one more per fallback.
 */
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";
import { checkNumber, checkOptions, listOptionNames } from "../base/options.ts";
import { checkRetry, type RetryPolicy } from "../base/retry.ts";
import type { Model } from "./model.ts";
import { isModelFailureKind, type ModelFailureKind, modelFailureKinds } from "./model-failure.ts";
import { type AnyModel, createModelResolver, isAnyModel, type ModelsOption, readGraphModels } from "./model-source.ts";

/** Timeouts in milliseconds. Default: none. */
export interface ModelTimeouts {
  /**
   * From a request to the first part of its answer. For a model without streaming, the whole answer is the first
   * part.
   */
  readonly firstTokenMs?: number;
  /** Between two parts of an answer. A keep-alive without content, such as a provider's ping, counts as a part. */
  readonly idleMs?: number;
  /** Of the whole call, including retries, their delays and fallbacks. */
  readonly totalMs?: number;
}

/** Retry policy of failed model requests. */
export interface ModelRetryPolicy
  extends RetryPolicy<readonly ModelFailureKind[] | ((error: unknown, attempt: number) => boolean)> {
  /**
   * Maximum delay in milliseconds that a provider may request. A longer `retry-after` is not awaited: the next
   * fallback is called, or the call fails. Default 60,000.
   */
  readonly maxRetryAfterMs?: number;
}

/** Fallback models, in order; each is called after the final failure of the previous model. */
export interface ModelFallback<Given = AnyModel> {
  readonly models: readonly Given[];
  /** Failure kinds that trigger a fallback. Default: all but `invalid_request`. */
  readonly on?: readonly ModelFailureKind[];
}

/** Policy of a model call. */
export interface ModelCallPolicy<Given = AnyModel> {
  readonly timeouts?: ModelTimeouts | undefined;
  readonly retry?: ModelRetryPolicy | undefined;
  readonly fallback?: readonly Given[] | ModelFallback<Given> | undefined;
}

export const callPolicyNames: readonly (keyof ModelCallPolicy)[] = ["timeouts", "retry", "fallback"];

/** Default of `maxRetryAfterMs`. */
export const defaultMaxRetryAfterMs = 60_000;

const timeoutNames = listOptionNames<ModelTimeouts>({ firstTokenMs: true, idleMs: true, totalMs: true });
const fallbackNames = listOptionNames<ModelFallback>({ models: true, on: true });

/** Cache of validated policies: an agent passes the same objects at each call. */
const validated: WeakSet<object> = new WeakSet();

/** Throws `invalid_option` for an invalid policy. */
export function checkCallPolicy(owner: string, { timeouts, retry, fallback }: ModelCallPolicy): void {
  if (timeouts !== undefined) checkOnce(timeouts, () => checkTimeouts(owner, timeouts));
  if (retry !== undefined) checkOnce(retry, () => checkModelRetry(owner, retry));
  if (fallback !== undefined) checkOnce(fallback, () => checkFallback(owner, fallback));
}

/** Throws `invalid_option` when two policies of the same call set the same part, because only one would apply. */
export function checkDuplicatePolicy(
  owner: string,
  policies: readonly (readonly [by: string, policy: ModelCallPolicy])[],
): void {
  for (const part of callPolicyNames) {
    const [first, second] = policies.filter(([, policy]) => policy[part] !== undefined);
    if (first === undefined || second === undefined) continue;
    throw invalidOption({
      where: owner,
      expected: `one ${part} for its model calls`,
      found: `two: in ${first[0]} and in ${second[0]}`,
      fix: "Remove one of them",
    });
  }
}

function checkOnce(part: unknown, check: () => void): void {
  if (typeof part === "object" && part !== null) {
    if (validated.has(part)) return;
    check();
    validated.add(part);
  } else check();
}

function checkTimeouts(owner: string, timeouts: ModelTimeouts): void {
  checkOptions(`the timeouts of ${owner}`, timeouts, timeoutNames);
  for (const [name, ms] of Object.entries(timeouts))
    if (!(ms === undefined || (typeof ms === "number" && ms > 0)))
      throw invalidOption({ where: owner, option: name, expected: "a number of milliseconds > 0", got: ms });
}

function checkModelRetry(owner: string, retry: ModelRetryPolicy): void {
  if (!isPlainObject(retry))
    throw invalidOption({ where: owner, option: "retry", expected: "a policy, such as { attempts: 3 }", got: retry });
  const { on, maxRetryAfterMs, ...policy } = retry;
  checkRetry(owner, policy);
  if (on !== undefined && typeof on !== "function") checkKinds(owner, "retry.on", on);
  checkNumber(owner, { maxRetryAfterMs }, 0);
}

function checkFallback(owner: string, fallback: NonNullable<ModelCallPolicy["fallback"]>): void {
  const models: unknown = Array.isArray(fallback) ? fallback : getFallbackModels(owner, fallback as ModelFallback);
  const expected = "a list of models, or { models: [model, …], on: [kind, …] }";
  if (!Array.isArray(models)) throw invalidOption({ where: owner, option: "fallback", expected, got: models });
  for (const model of models)
    if (!isAnyModel(model)) throw invalidOption({ where: owner, option: "fallback", expected, got: model });
}

function getFallbackModels(owner: string, fallback: ModelFallback): unknown {
  checkOptions(`the fallback of ${owner}`, fallback, fallbackNames);
  if (fallback.on !== undefined) checkKinds(owner, "fallback.on", fallback.on);
  return fallback.models;
}

function checkKinds(owner: string, option: string, kinds: unknown): void {
  const expected = `a list of failure kinds: ${modelFailureKinds.join(", ")}`;
  if (!Array.isArray(kinds)) throw invalidOption({ where: owner, option, expected, got: kinds });
  for (const kind of kinds)
    if (!isModelFailureKind(kind)) throw invalidOption({ where: owner, option, expected, got: kind });
}

/** Returns the fallback models, in order, and the failure kinds that trigger a fallback. */
export function resolveFallback<Given>({ fallback }: ModelCallPolicy<Given>): {
  readonly models: readonly Given[];
  readonly on?: readonly ModelFailureKind[] | undefined;
} {
  if (fallback === undefined) return { models: [] };
  return isModelList(fallback) ? { models: fallback } : fallback;
}

function isModelList<Given>(fallback: readonly Given[] | ModelFallback<Given>): fallback is readonly Given[] {
  return Array.isArray(fallback);
}

/** Returns the policy with its fallback models converted by `toModel`. */
export function resolveCallPolicy(
  policy: ModelCallPolicy,
  toModel: (given: AnyModel) => Model,
): ModelCallPolicy<Model> {
  const { timeouts, retry, fallback } = policy;
  if (fallback === undefined) return { timeouts, retry };
  const { models, on } = resolveFallback({ fallback });
  return { timeouts, retry, fallback: { models: models.map(toModel), ...(on === undefined ? {} : { on }) } };
}

/**
 * Throws the error of the first model that the sources in the options cannot find. Without a source every model is
 * left to the options of the run.
 */
export function checkKnownModels(
  where: string,
  options: ModelsOption & Pick<ModelCallPolicy, "fallback"> & { readonly model: AnyModel },
): void {
  const sources = readGraphModels(options);
  if (sources === undefined) return;
  const findModel = createModelResolver([sources.given], sources.default);
  for (const model of [options.model, ...resolveFallback(options).models]) findModel(model, where);
}

/** A model with its fallbacks. */
export interface ModelChoice {
  readonly model: AnyModel;
  readonly fallback?: ModelCallPolicy["fallback"];
}

/**
 * Splits a list of models into the first model and its fallbacks. Throws `invalid_option` for an empty list, and for a
 * list together with `fallback`.
 */
export function splitModels(
  where: string,
  { model, fallback }: { readonly model: AnyModel | readonly AnyModel[] } & Pick<ModelCallPolicy, "fallback">,
): ModelChoice {
  if (!isList(model)) return { model, ...(fallback === undefined ? {} : { fallback }) };
  const [first, ...others] = model;
  if (first === undefined)
    throw invalidOption({
      where,
      option: "model",
      expected: "a model or a list of at least one model",
      found: "an empty list",
      fix: "Pass at least one model: the first is called, the others are fallbacks in their order",
    });
  if (fallback === undefined) return { model: first, ...(others.length === 0 ? {} : { fallback: others }) };
  throw invalidOption({
    where,
    expected: "a list of models or `fallback`",
    found: "both",
    fix: "Pass one model and its fallback, or a list of models without fallback",
  });
}

function isList(model: AnyModel | readonly AnyModel[]): model is readonly AnyModel[] {
  return Array.isArray(model);
}
