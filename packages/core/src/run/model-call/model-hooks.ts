/** The hooks around a model call, each called in its order; a hook that ends the agent is the last that is called. */

import { StatewrightError } from "../../base/errors.ts";
import { disregardPromises } from "../../base/ignore-rejections.ts";
import { describeValue, isPlainObject } from "../../base/json.ts";
import type { AssistantMessage } from "../../model/message.ts";
import type { ModelReply, ModelRequest } from "../../model/model.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import { callHook } from "./call-hook.ts";
import { lostKey } from "./failed-attempt-hooks.ts";
import { type HooksAtWork, runtimeFor } from "./hook-runtime.ts";

/** The request with the tools that middleware shows in this turn. None can show what another has hidden. */
export async function selectTools(
  at: HooksAtWork,
  middleware: readonly Middleware[],
  request: ModelRequest,
): Promise<ModelRequest> {
  if (!middleware.some((each) => each.selectTools !== undefined)) return request;
  const all = request.tools.map(({ name }) => name);
  let names: readonly string[] = all;
  for (const hooks of middleware) {
    const select = hooks.selectTools;
    if (select === undefined) continue;
    const before = names;
    const chosen: unknown = await callHook(hooks, "selectTools", () => select(before, runtimeFor(at, hooks)));
    if (at.ending !== undefined) return request;
    if (chosen === undefined) continue;
    if (!Array.isArray(chosen) || !chosen.every((name) => all.includes(name)))
      throw unfitAnswer(hooks, "selectTools", chosen, `a list of names out of ${JSON.stringify(all)}`);
    names = before.filter((name) => chosen.includes(name));
  }
  return withTools(request, names);
}

/** The request with these of its tools. What a provider knows of a hidden one is hidden with it. */
function withTools(request: ModelRequest, names: readonly string[]): ModelRequest {
  const { tools, providerTools } = request;
  const isHidden = ({ name }: { readonly name: string }): boolean => !names.includes(name);
  return {
    ...request,
    tools: tools.filter((tool) => !isHidden(tool)),
    ...(providerTools && {
      providerTools: providerTools.filter((own) => !tools.some((tool) => tool.name === own.name && isHidden(tool))),
    }),
  };
}

/** The request as `beforeModel` leaves it, first to last. */
export async function beforeModel(
  at: HooksAtWork,
  middleware: readonly Middleware[],
  request: ModelRequest,
): Promise<ModelRequest> {
  let current = request;
  if (at.ending !== undefined) return current;
  for (const hooks of middleware) {
    const { beforeModel: hook } = hooks;
    if (hook === undefined) continue;
    const before = current;
    current = (await callHook(hooks, "beforeModel", () => hook(before, runtimeFor(at, hooks)))) ?? before;
    if (at.ending !== undefined) return before;
    if (!isPlainObject(current) || !Array.isArray(current.messages) || !Array.isArray(current.tools))
      throw unfitAnswer(hooks, "beforeModel", current, "a request");
  }
  return current;
}

/** `ask` with `aroundModel` of all middleware around it, the first outermost. */
export function aroundModel(
  at: HooksAtWork,
  middleware: readonly Middleware[],
  ask: (request: ModelRequest) => Promise<ModelReply>,
): (request: ModelRequest) => Promise<ModelReply> {
  let next = ask;
  for (const hooks of middleware.toReversed()) {
    const wrap = hooks.aroundModel;
    if (wrap === undefined) continue;
    const inner = next;
    next = (request) => wrapped(at, hooks, wrap, request, inner);
  }
  return next;
}

/** A hook around the rest. What the rest threw goes through it as it is; what the hook itself throws names it. */
async function wrapped(
  at: HooksAtWork,
  middleware: Middleware,
  wrap: NonNullable<Middleware["aroundModel"]>,
  request: ModelRequest,
  inner: (request: ModelRequest) => Promise<ModelReply>,
): Promise<ModelReply> {
  let inside: { readonly thrown: unknown } | undefined;
  const watched = async (given: ModelRequest): Promise<ModelReply> => {
    try {
      return await inner(given);
    } catch (thrown) {
      inside = { thrown };
      throw thrown;
    }
  };
  try {
    return await wrap(request, watched, runtimeFor(at, middleware));
  } catch (thrown) {
    if (inside !== undefined && Object.is(inside.thrown, thrown)) throw thrown;
    return callHook(middleware, "aroundModel", () => Promise.reject(thrown));
  }
}

/** The reply as `afterModel` leaves it, last to first; `check` looks at what a hook has replaced. */
export async function afterModel(
  at: HooksAtWork,
  middleware: readonly Middleware[],
  reply: ModelReply,
  check: (reply: ModelReply, middleware: Middleware) => void,
): Promise<ModelReply> {
  let current = reply;
  for (const hooks of middleware.toReversed()) {
    const { afterModel: hook } = hooks;
    if (hook === undefined) continue;
    const before = current;
    current = (await callHook(hooks, "afterModel", () => hook(before, runtimeFor(at, hooks)))) ?? before;
    if (at.ending !== undefined) return before;
    if (current !== before) check(current, hooks);
  }
  return current;
}

/** Show the message to `onMessage` of all middleware, last to first. */
export async function onMessage(
  at: HooksAtWork,
  middleware: readonly Middleware[],
  message: AssistantMessage,
  model: string | undefined,
): Promise<void> {
  const key = lostKey(lostIn(message));
  for (const hooks of middleware.toReversed()) {
    const { onMessage: hook } = hooks;
    if (hook !== undefined)
      await callHook(hooks, "onMessage", () => hook({ message, model, key }, runtimeFor(at, hooks)));
  }
}

/** How many requests were lost for a message. */
export function lostIn({ lost = [] }: AssistantMessage): number {
  return lost.filter(({ kind }) => kind !== "beside").length;
}

/** The error of a hook that gave what it may not. */
export function unfitAnswer(middleware: Middleware, name: string, answer: unknown, wanted: string): StatewrightError {
  disregardPromises(answer);
  return new StatewrightError("node_failed", {
    what: `the hook ${name} of the middleware "${middleware.name}" returned ${describeValue(answer)}, which is not ${wanted}`,
    next: `Return ${wanted}, or nothing to leave it as it is`,
  });
}
