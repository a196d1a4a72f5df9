/** Hooks around a model call, called in order. A hook that ends the agent is the last hook called. */

import { StatewrightError } from "../../base/errors.ts";
import { ignoreRejections } from "../../base/ignore-rejections.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import type { AssistantMessage } from "../../model/message.ts";
import type { ModelReply, ModelRequest } from "../../model/model.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { callHook } from "./call-hook.ts";
import { createAttemptKey } from "./failed-attempt-hooks.ts";
import type { HookPass } from "./hook-pass.ts";
import { createModelHookRuntime } from "./hook-runtime.ts";

/**
 * Returns the request with the tools selected by middleware. No middleware can show a tool hidden by another
 * middleware.
 */
export async function selectTools(
  pass: HookPass,
  middleware: readonly Middleware[],
  request: ModelRequest,
): Promise<ModelRequest> {
  if (!middleware.some((each) => each.selectTools !== undefined)) return request;
  const all = request.tools.map(({ name }) => name);
  let names: readonly string[] = all;
  for (const hooks of middleware) {
    const select = hooks.selectTools;
    if (select === undefined) continue;
    const current = names;
    const chosen: unknown = await callHook(hooks, "selectTools", () =>
      select(current, createModelHookRuntime(pass, hooks)),
    );
    if (pass.ending !== undefined) return request;
    if (chosen === undefined) continue;
    if (!Array.isArray(chosen) || !chosen.every((name) => all.includes(name)))
      throw createHookResultError(hooks, "selectTools", chosen, `a list of names from ${JSON.stringify(all)}`);
    names = current.filter((name) => chosen.includes(name));
  }
  return filterTools(request, names);
}

/** Returns the request with these tools only. Provider tools of a hidden tool are hidden too. */
function filterTools(request: ModelRequest, names: readonly string[]): ModelRequest {
  const { tools, providerTools } = request;
  const isHidden = ({ name }: { readonly name: string }): boolean => !names.includes(name);
  return {
    ...request,
    tools: tools.filter((tool) => !isHidden(tool)),
    ...(providerTools && {
      providerTools: providerTools.filter(
        (providerTool) => !tools.some((tool) => tool.name === providerTool.name && isHidden(tool)),
      ),
    }),
  };
}

/** Applies `beforeModel` of all middleware to the request, first to last. */
export async function applyBeforeModel(
  pass: HookPass,
  middleware: readonly Middleware[],
  request: ModelRequest,
): Promise<ModelRequest> {
  let current = request;
  if (pass.ending !== undefined) return current;
  for (const hooks of middleware) {
    const { beforeModel: hook } = hooks;
    if (hook === undefined) continue;
    const previous = current;
    current =
      (await callHook(hooks, "beforeModel", () => hook(previous, createModelHookRuntime(pass, hooks)))) ?? previous;
    if (pass.ending !== undefined) return previous;
    if (!isPlainObject(current) || !Array.isArray(current.messages) || !Array.isArray(current.tools))
      throw createHookResultError(hooks, "beforeModel", current, "a request");
  }
  return current;
}

/** Wraps `generate` in `aroundModel` of all middleware, the first outermost. */
export function wrapAroundModel(
  pass: HookPass,
  middleware: readonly Middleware[],
  generate: (request: ModelRequest) => Promise<ModelReply>,
): (request: ModelRequest) => Promise<ModelReply> {
  let next = generate;
  for (const hooks of middleware.toReversed()) {
    const wrap = hooks.aroundModel;
    if (wrap === undefined) continue;
    const inner = next;
    next = (request) => callAroundModel(pass, hooks, wrap, { request, inner });
  }
  return next;
}

/**
 * Calls one `aroundModel` hook. An error of the inner layer passes through unchanged; an error of the hook names its
 * middleware.
 */
async function callAroundModel(
  pass: HookPass,
  middleware: Middleware,
  wrap: NonNullable<Middleware["aroundModel"]>,
  {
    request,
    inner,
  }: { readonly request: ModelRequest; readonly inner: (request: ModelRequest) => Promise<ModelReply> },
): Promise<ModelReply> {
  let innerFailure: { readonly thrown: unknown } | undefined;
  const callInner = async (innerRequest: ModelRequest): Promise<ModelReply> => {
    try {
      return await inner(innerRequest);
    } catch (thrown) {
      innerFailure = { thrown };
      throw thrown;
    }
  };
  try {
    return await wrap(request, callInner, createModelHookRuntime(pass, middleware));
  } catch (thrown) {
    if (innerFailure !== undefined && Object.is(innerFailure.thrown, thrown)) throw thrown;
    return callHook(middleware, "aroundModel", () => Promise.reject(thrown));
  }
}

/** Applies `afterModel` of all middleware to the reply, last to first; `check` validates each replaced reply. */
export async function applyAfterModel(
  pass: HookPass,
  middleware: readonly Middleware[],
  reply: ModelReply,
  check: (reply: ModelReply, middleware: Middleware) => void,
): Promise<ModelReply> {
  let current = reply;
  for (const hooks of middleware.toReversed()) {
    const { afterModel: hook } = hooks;
    if (hook === undefined) continue;
    const previous = current;
    current =
      (await callHook(hooks, "afterModel", () => hook(previous, createModelHookRuntime(pass, hooks)))) ?? previous;
    if (pass.ending !== undefined) return previous;
    if (current !== previous) check(current, hooks);
  }
  return current;
}

/** Calls `onMessage` of all middleware with the message, last to first. */
export async function notifyOnMessage(
  pass: HookPass,
  middleware: readonly Middleware[],
  message: AssistantMessage,
  model: string | undefined,
): Promise<void> {
  const key = createAttemptKey(countFailedAttempts(message));
  for (const hooks of middleware.toReversed()) {
    const { onMessage: hook } = hooks;
    if (hook !== undefined)
      await callHook(hooks, "onMessage", () => hook({ message, model, key }, createModelHookRuntime(pass, hooks)));
  }
}

/** Returns the number of failed requests for a message. */
export function countFailedAttempts({ failedAttempts = [] }: AssistantMessage): number {
  return failedAttempts.filter(({ kind }) => kind !== "auxiliary").length;
}

/** Creates the error for an invalid return value of a hook. */
export function createHookResultError(
  middleware: Middleware,
  name: string,
  result: unknown,
  expected: string,
): StatewrightError {
  ignoreRejections(result);
  return new StatewrightError("node_failed", {
    what: `the hook ${name} of the middleware "${middleware.name}" returned ${describeValue(result)}, which is not ${expected}`,
    next: `Return ${expected}, or nothing for no change`,
  });
}
