/** Calls hooks before each request to a model goes out, and tells them of its end. */
import { describeThrown } from "../../base/errors.ts";
import type { Model, ModelRequest } from "../../model/model.ts";
import type { Middleware, OutgoingRequest, RequestEnded } from "../../tool/policy/middleware.ts";
import { hookRuntime } from "../session/scope.ts";
import type { Session } from "../session/session.ts";
import { callHook } from "./call-hook.ts";
import type { HooksAtWork } from "./hook-runtime.ts";

/** Called with a request that is about to go out; gives what is told of its end. */
export type BeforeRequest = (model: Model, request: ModelRequest) => Promise<RequestEnded>;

/** `beforeRequest` of all middleware, the innermost first; nothing where none has it. */
export function beforeRequests(at: HooksAtWork): BeforeRequest | undefined {
  const asked = at.middleware.filter(({ beforeRequest }) => beforeRequest !== undefined).reverse();
  return asked.length === 0 ? undefined : (model, request) => callEach(at, asked, model, request);
}

async function callEach(
  { session, scope, effect, held }: HooksAtWork,
  middleware: readonly Middleware[],
  { id }: Model,
  request: ModelRequest,
): Promise<RequestEnded> {
  // One for all hooks: those that wait for each other know a request by it.
  const outgoing: OutgoingRequest = { model: id, request };
  const told: RequestEnded[] = [];
  const tellAll: RequestEnded = (usage, wentOut) => {
    for (const ended of told) ended(usage, wentOut);
  };
  try {
    for (const hooks of middleware) {
      const { beforeRequest } = hooks;
      if (beforeRequest === undefined) continue;
      const runtime = hookRuntime(session, scope, effect, hooks, held);
      const ended: unknown = await callHook(hooks, "beforeRequest", () => beforeRequest(outgoing, runtime));
      if (typeof ended === "function") told.push(logged(session, hooks, ended as RequestEnded));
      scope.signal().throwIfAborted();
    }
  } catch (error) {
    // The request does not go out: what the hooks before have taken for it, they give back.
    tellAll(undefined, false);
    throw error;
  }
  return tellAll;
}

/** What it throws comes too late for the request: it is logged. */
function logged({ world }: Session, { name }: Middleware, ended: RequestEnded): RequestEnded {
  return (usage, wentOut) => {
    try {
      ended(usage, wentOut);
    } catch (cause) {
      world.log("warn", `the middleware "${name}" failed at the end of a request: ${describeThrown(cause)}`);
    }
  };
}
