/** Middleware around models and tools: before in order of registration, around with the first outermost, after in reverse. */

import { StatewrightError } from "../base/errors.ts";
import type { RunIdentity } from "../base/injection.ts";
import { describeValue, isPlainObject, type Json } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { Clock } from "../base/time.ts";
import type { ModelReply, ModelRequest } from "../model/model.ts";
import type { ToolOutput, ToolResult } from "./result.ts";
import type { ToolCall, ToolSpec } from "./tool.ts";

/** What `beforeTool` decides about a call. */
export type BeforeToolDecision =
  | { readonly action: "allow" }
  | { readonly action: "modify"; readonly args: unknown }
  | { readonly action: "deny"; readonly reason: string; readonly terminate?: boolean }
  | { readonly action: "respond"; readonly output: ToolOutput | string }
  | ({ readonly action: "interrupt"; readonly key: string; readonly payload: Json } & AskOptions);

/** How long a question about a call waits, and what is done when nobody answered in time. */
export interface AskOptions {
  /** In milliseconds; for ever when absent. */
  readonly expiresMs?: number;
  /** Default `deny`: the model reads that nobody answered. */
  readonly onExpire?: "deny" | "allow";
}

/** What every hook knows beside its subject. */
export interface MiddlewareRuntime<Context = unknown, State = unknown> {
  readonly context: Context;
  readonly state: State;
  readonly run: RunIdentity;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

type Awaitable<Value> = Value | Promise<Value>;

/** Hooks by name; each is optional. An error in a hook of a `required` middleware fails the run, another is logged. */
export interface Middleware<Context = unknown, State = unknown> {
  readonly name: string;
  readonly required?: boolean;
  /** Decide about a call before it runs; once per call, also for calls that will be retried. */
  readonly beforeTool?: (
    at: { readonly call: ToolCall; readonly tool: ToolSpec },
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<BeforeToolDecision | undefined>;
  /** Stand around the execution of a call, retries included; `next` runs it. */
  readonly aroundTool?: (
    at: { readonly call: ToolCall; readonly tool: ToolSpec },
    next: (call: ToolCall) => Promise<ToolResult>,
    runtime: MiddlewareRuntime<Context, State>,
  ) => Promise<ToolResult>;
  /** Filter a partial result; null withholds it. */
  readonly onToolUpdate?: (at: { readonly call: ToolCall; readonly partial: ToolOutput }) => ToolOutput | null;
  /** See or replace the result; also of denied, skipped and unknown calls. */
  readonly afterTool?: (
    at: { readonly call: ToolCall; readonly result: ToolResult },
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<ToolResult | undefined>;
  /** See or replace the request; runs in the recorded effect of the model call. */
  readonly beforeModel?: (
    request: ModelRequest,
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<ModelRequest | undefined>;
  readonly aroundModel?: (
    request: ModelRequest,
    next: (request: ModelRequest) => Promise<ModelReply>,
    runtime: MiddlewareRuntime<Context, State>,
  ) => Promise<ModelReply>;
  /** See or replace the reply. */
  readonly afterModel?: (
    reply: ModelReply,
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<ModelReply | undefined>;
}

/** Define middleware; `Context` and `State` are what its hooks read. */
export function defineMiddleware<Context = unknown, State = unknown>(
  middleware: Middleware<Context, State>,
): Middleware<Context, State> {
  checkMiddleware([middleware]);
  return Object.freeze(middleware);
}

const hookNames = optionNames<Omit<Middleware, "name" | "required">>({
  beforeTool: true,
  aroundTool: true,
  onToolUpdate: true,
  afterTool: true,
  beforeModel: true,
  aroundModel: true,
  afterModel: true,
});

/** Throws `invalid_option` for what is no list of middleware, or has a hook that there is not: it would never be called. */
export function checkMiddleware(list: unknown): void {
  if (!Array.isArray(list)) {
    throw new StatewrightError("invalid_option", {
      what: `the middleware is ${describeValue(list)}, not a list`,
      next: "Give [middleware, …] that defineMiddleware made",
    });
  }
  list.forEach(checkOne);
}

function checkOne(middleware: unknown): void {
  if (typeof middleware !== "object" || middleware === null) throw noMiddleware(describeValue(middleware));
  const name: unknown = Reflect.get(middleware, "name");
  if (typeof name !== "string") throw noMiddleware("middleware without a name");
  const owner = `the middleware "${name}"`;
  // An instance of a class may have fields of its own.
  if (isPlainObject(middleware)) checkOptions(owner, middleware, ["name", "required", ...hookNames]);
  for (const hook of hookNames) {
    const given: unknown = Reflect.get(middleware, hook);
    if (given === undefined || typeof given === "function") continue;
    throw new StatewrightError("invalid_option", {
      what: `the hook ${hook} of ${owner} is ${describeValue(given)}`,
      next: "Give a function, or leave it out",
    });
  }
}

function noMiddleware(given: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `${given} stands where middleware is due`,
    next: "Make it with defineMiddleware({ name, … })",
  });
}

const allowed: BeforeToolDecision = Object.freeze({ action: "allow" });

/** Let the call go on as it is. */
export function allow(): BeforeToolDecision {
  return allowed;
}

/** Let the call go on with other arguments; they are validated again. */
export function modify(args: unknown): BeforeToolDecision {
  return { action: "modify", args };
}

/** Refuse the call; the model reads the reason. `terminate` ends the agent after this set of calls. */
export function deny(reason: string, options: { readonly terminate?: boolean } = {}): BeforeToolDecision {
  return { action: "deny", reason, ...options };
}

/** Answer the call without running the tool. */
export function respond(output: ToolOutput | string): BeforeToolDecision {
  return { action: "respond", output };
}

/** Ask a person under the key `approve`; the call waits. The payload shows the call and the reason. */
export function interruptFor(call: ToolCall, reason: string, options: AskOptions = {}): BeforeToolDecision {
  checkOptions("interruptFor", options, ["expiresMs", "onExpire"]);
  return {
    action: "interrupt",
    key: "approve",
    payload: { callId: call.id, tool: call.name, args: call.args as Json, reason },
    ...options,
  };
}
