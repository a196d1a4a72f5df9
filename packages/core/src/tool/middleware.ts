/** Middleware around models and tools: before in order of registration, around with the first outermost, after in reverse. */

import { StatewrightError } from "../base/errors.ts";
import type { RunIdentity } from "../base/injection.ts";
import { describeValue, isPlainObject, type Json } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { Clock } from "../base/time.ts";
import type { ModelReply, ModelRequest } from "../model/model.ts";
import type { Channel } from "../state/channel.ts";
import { approveKey } from "./approval.ts";
import type { ToolOutput, ToolResult } from "./result.ts";
import type { ToolCall, ToolSpec } from "./tool.ts";

/** What `beforeTool` decides about a call. */
export type BeforeToolDecision =
  | { readonly action: "allow" }
  | { readonly action: "modify"; readonly args: unknown }
  | { readonly action: "deny"; readonly reason: string; readonly terminate?: boolean; readonly fail?: boolean }
  | { readonly action: "respond"; readonly output: ToolOutput | string }
  | { readonly action: "abort"; readonly reason: string }
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
  /** Wait on the run's clock; the end of the run ends the wait. */
  readonly wait: (ms: number) => Promise<void>;
}

type Awaitable<Value> = Value | Promise<Value>;

/** Hooks by name; each is optional. An error in a hook of a `required` middleware fails the run, another is logged. */
export interface Middleware<Context = unknown, State = unknown> {
  readonly name: string;
  readonly required?: boolean;
  /** The keys of the questions that it asks: a graph without them is refused where it is defined. */
  readonly asks?: readonly string[];
  /** Channels that it keeps its facts in, written by the `command` of results; agents add them to their state, graphs declare them. */
  readonly channels?: Readonly<Record<string, Channel>>;
  /**
   * Decide about a call before it runs; once for all its retries. After a person's answer the call is prepared anew, and
   * after a person's or a later hook's change of approved arguments every hook decides about the new ones.
   */
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
  /** What events and questions show in place of the call's arguments. One that throws withholds them. */
  readonly showArgs?: (at: { readonly call: ToolCall; readonly tool: ToolSpec; readonly args: Json }) => Json;
  /** Filter a partial result, and lines of progress as their content; null withholds it. */
  readonly onToolUpdate?: (at: { readonly call: ToolCall; readonly partial: ToolOutput }) => ToolOutput | null;
  /** See or replace the result; also of denied, skipped, cancelled and unknown calls, the last without a `tool`. */
  readonly afterTool?: (
    at: { readonly call: ToolCall; readonly tool: ToolSpec | undefined; readonly result: ToolResult },
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<ToolResult | undefined>;
  /**
   * Choose the tools that the model is shown in this turn, out of these names; nothing leaves them as they are. A call of
   * one that was not shown is not run.
   */
  readonly selectTools?: (
    names: readonly string[],
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<readonly string[] | undefined>;
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

const hookNames = optionNames<Omit<Middleware, "name" | "required" | "asks" | "channels">>({
  beforeTool: true,
  aroundTool: true,
  showArgs: true,
  onToolUpdate: true,
  afterTool: true,
  selectTools: true,
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
  if (isPlainObject(middleware))
    checkOptions(owner, middleware, ["name", "required", "asks", "channels", ...hookNames]);
  const asks: unknown = Reflect.get(middleware, "asks");
  if (asks !== undefined && !(Array.isArray(asks) && asks.every((key) => typeof key === "string")))
    throw unfitPart(owner, "asks", asks, 'a list of keys, such as ["approve"]');
  const channels: unknown = Reflect.get(middleware, "channels");
  if (channels !== undefined && !isPlainObject(channels))
    throw unfitPart(owner, "channels", channels, "{ name: reduce(…) }");
  for (const hook of hookNames) {
    const given: unknown = Reflect.get(middleware, hook);
    if (given === undefined || typeof given === "function") continue;
    throw unfitPart(owner, `hook ${hook}`, given, "a function");
  }
}

function unfitPart(owner: string, part: string, given: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: `the ${part} of ${owner} is ${describeValue(given)}`,
    next: `Give ${wanted}, or leave it out`,
  });
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

/**
 * Refuse the call; the model reads the reason. `terminate` ends the agent after this set of calls, `fail` fails the run with
 * an error that names the call.
 */
export function deny(
  reason: string,
  options: { readonly terminate?: boolean; readonly fail?: boolean } = {},
): BeforeToolDecision {
  return { action: "deny", reason, ...options };
}

/**
 * End the run as cancelled, with this reason: calls at work are told to stop, every call is answered. Like after
 * any cancel, the thread takes a new input, and a resume asks the model what it makes of the answers.
 */
export function abort(reason: string): BeforeToolDecision {
  return { action: "abort", reason };
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
    key: approveKey,
    payload: { callId: call.id, tool: call.name, args: call.args as Json, reason },
    ...options,
  };
}
