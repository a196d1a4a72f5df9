/** Calls the `beforeRequest` hooks before each model request, and their callbacks at its end. */

import { describeThrown } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { Model, ModelRequest } from "../../model/model.ts";
import type { Middleware, OutgoingRequest, RequestEndListener } from "../../tool/policy/middleware.ts";
import { createHookRuntime } from "../journal/middleware-runtime.ts";
import { callHook } from "./call-hook.ts";
import type { HookPass } from "./hook-pass.ts";

/** Called before a model request; returns the callback for the request's end. */
export type BeforeRequest = (model: Model, request: ModelRequest) => Promise<RequestEndListener>;

/** Combines the `beforeRequest` hooks of all middleware, innermost first; undefined when there are none. */
export function createBeforeRequest(hooks: HookPass): BeforeRequest | undefined {
  const middleware = hooks.middleware.filter(({ beforeRequest }) => beforeRequest !== undefined).reverse();
  return middleware.length === 0 ? undefined : (model, request) => callHooks(hooks, middleware, model, request);
}

async function callHooks(
  pass: HookPass,
  middleware: readonly Middleware[],
  { id }: Model,
  request: ModelRequest,
): Promise<RequestEndListener> {
  const { env, scope, effect, reservations } = pass;
  // The same object for all hooks: hooks that wait for each other identify a request by this object.
  const outgoing: OutgoingRequest = { model: id, request };
  const endCallbacks: RequestEndListener[] = [];
  const notifyAll: RequestEndListener = (usage, wentOut) => {
    for (const ended of endCallbacks) ended(usage, wentOut);
  };
  try {
    for (const hooks of middleware) {
      const { beforeRequest } = hooks;
      if (beforeRequest === undefined) continue;
      const runtime = createHookRuntime(pass, scope, effect, { middleware: hooks, reservations });
      const ended: unknown = await callHook(hooks, "beforeRequest", () => beforeRequest(outgoing, runtime));
      if (typeof ended === "function") endCallbacks.push(withErrorLog(env.world, hooks, ended as RequestEndListener));
      scope.getSignal().throwIfAborted();
    }
  } catch (error) {
    // The request is not sent: earlier hooks release their reservations for it.
    notifyAll(undefined, false);
    throw error;
  }
  return notifyAll;
}

/** Wraps an end callback. The request has ended already, so errors are only logged. */
function withErrorLog(world: World, { name }: Middleware, ended: RequestEndListener): RequestEndListener {
  return (usage, wentOut) => {
    try {
      ended(usage, wentOut);
    } catch (cause) {
      world.log("warn", `the middleware "${name}" failed at the end of a model request: ${describeThrown(cause)}`);
    }
  };
}
