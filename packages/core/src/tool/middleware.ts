/** Middleware around models and tools: before in order of registration, around with the first outermost, after in reverse. */

import type { RunIdentity } from "../base/injection.ts";
import type { Json } from "../base/json.ts";
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
  | { readonly action: "interrupt"; readonly key: string; readonly payload: Json };

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
  return Object.freeze(middleware);
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
export function interruptFor(call: ToolCall, reason: string): BeforeToolDecision {
  return {
    action: "interrupt",
    key: "approve",
    payload: { callId: call.id, tool: call.name, args: call.args as Json, reason },
  };
}
