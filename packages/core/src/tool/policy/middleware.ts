/** Middleware around models and tools: before in order of registration, around with the first outermost, after in reverse. */

import { StatewrightError } from "../../base/errors.ts";
import type { RunIdentity } from "../../base/injection.ts";
import { describeValue, isPlainObject, type Json } from "../../base/json.ts";
import type { OpenLongTerm } from "../../base/long-term.ts";
import { checkOptions, optionNames } from "../../base/options.ts";
import type { Clock } from "../../base/time.ts";
import { callPolicyNames, checkCallPolicy, type ModelCallPolicy, refuseSaidTwice } from "../../model/call-policy.ts";
import type { LostAttempt } from "../../model/failed-attempt.ts";
import type { AgentEnd, AssistantMessage, Message, Usage } from "../../model/message.ts";
import type { Model, ModelDelta, ModelReply, ModelRequest } from "../../model/model.ts";
import type { Channel } from "../../state/channel.ts";
import type { ToolCall, ToolSpec } from "../definition/tool.ts";
import type { ToolOutput, ToolResult } from "../result.ts";
import { approveKey } from "./approval.ts";
import { type AnswerOf, checkInterrupts, type InterruptShape, type PayloadOf } from "./interrupt.ts";
import type { OpenLedger } from "./ledger.ts";

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
  /** The ledger of a channel of the middleware: what hooks share while calls and graphs are at work side by side. */
  readonly ledger: OpenLedger;
  /** Send an event of your own on the run's stream; it is not kept. */
  readonly emit: (name: string, payload: Json) => void;
}

/** What a hook around models knows besides: `state` is as it and the hooks before it have written. */
export interface WritingRuntime<Context = unknown, State = unknown> extends MiddlewareRuntime<Context, State> {
  /** The id of the model that is asked; undefined at the two ends of an agent's run. */
  readonly model: string | undefined;
  /**
   * Write channels of the graph: saved with what the hooks stand around, in the same superstep, and written again by a
   * replay, which runs no hook. Fails with `unknown_channel` for a channel that the graph does not have.
   */
  readonly write: (update: Readonly<Record<string, unknown>>) => void;
  /**
   * Ask another model, such as a small one that summarises. The answer is recorded by its key: after a crash it is not paid
   * for twice. It streams to nobody and is no message of the conversation; what it cost is told by `model.asked_beside`, and
   * around a model call stands in `lost` of its message, under the kind `beside`. Default: 3 attempts.
   */
  readonly ask: (key: string, call: BesideCall) => Promise<ModelReply>;
  /** The long-term store. What is put is recorded and saved with what the hooks stand around. Fails with `missing_store`. */
  readonly longTerm: OpenLongTerm;
}

/** What a hook asks of another model. */
export interface BesideCall extends ModelCallPolicy {
  readonly model: Model;
  readonly request: ModelRequest;
}

/** What a hook knows that may end the agent. */
export interface EndingRuntime<Context = unknown, State = unknown> extends WritingRuntime<Context, State> {
  /**
   * End the agent with this text as its answer: the model is not asked, or its reply is dropped, and no further hook but
   * `afterAgent` is called. `by` says who ended it, as `budget` or `guardrail`; the message keeps that as its `ended`.
   */
  readonly end: (text: string, ended: AgentEnd) => undefined;
}

/** What a hook knows before anything was sent to the model. */
export interface ModelHookRuntime<
  Context = unknown,
  State = unknown,
  Interrupts extends InterruptShape = InterruptShape,
> extends EndingRuntime<Context, State> {
  /**
   * Ask a person, under a key of the middleware's `interrupts`, and wait: the process may end meanwhile. When the answer is there
   * the hooks begin again with the first, and this gives it; until then this promise never settles.
   */
  readonly interrupt: <Key extends keyof Interrupts & string>(
    key: Key,
    question?: HookQuestion<PayloadOf<Interrupts[Key]>>,
  ) => Promise<AnswerOf<Interrupts[Key]>>;
}

/** What a question of a hook shows, and how long it waits where its declaration does not say that. */
export interface HookQuestion<Payload = unknown> {
  readonly payload?: Payload;
  /** In milliseconds. */
  readonly expiresMs?: number;
  /** The answer that is taken when nobody answered in time; without it the hook gets `interrupt_expired`. */
  readonly onExpire?: unknown;
}

/** What `afterAgent` is told. */
export interface AgentEnding {
  /** The conversation, with the answer that ends it. */
  readonly messages: readonly Message[];
  /** How it ends. */
  readonly ended: AgentEnd;
  /** The conversation as models are shown it, by `showMessages` of all middleware: for what leaves the run, such as a request to another model. */
  readonly shown: () => Promise<readonly Message[]>;
}

/** A request that is about to go out: the same object for all hooks. */
export interface OutgoingRequest {
  /** The id of the model that is asked. */
  readonly model: string;
  readonly request: ModelRequest;
}

/** Told when a request has come to its end: what it is known to have used, and whether it went out at all. */
export type RequestEnded = (usage: Usage | undefined, wentOut: boolean) => void;

type Awaitable<Value> = Value | Promise<Value>;

/**
 * Hooks by name; each is optional. An error in a hook around tools fails the run where the middleware is `required`, and is
 * logged where it is not; one in a hook around models or agents fails the node that it stands in.
 */
export interface Middleware<Context = unknown, State = unknown, Interrupts extends InterruptShape = InterruptShape> {
  readonly name: string;
  readonly required?: boolean;
  /** The keys of the questions that it asks about calls: a graph without them is refused where it is defined. Only middleware that states one counts as asking where a tool says `confirm: "always"`. */
  readonly asks?: readonly string[];
  /** Channels that it keeps its facts in, written by its hooks and the `command` of results; agents add them to their state, graphs declare them. */
  readonly channels?: Readonly<Record<string, Channel>>;
  /** It stands around the graphs inside too, such as sub-agents, with the channels and questions of the graph that it was given to. */
  readonly inherited?: boolean;
  /**
   * How models are asked: limits of time, retries, models that stand in. It is no hook around the call, so that nothing
   * multiplies: of several that say the same the outermost counts, before what the call itself says.
   */
  readonly modelCall?: ModelCallPolicy;
  /** Questions that its hooks before the model ask; agents add them to their graph, graphs declare them. */
  readonly interrupts?: Interrupts;
  /**
   * Decide about a call before it runs; once for all its retries. After a person's answer the call is prepared anew. A hook
   * decides again when arguments change after it has decided, by a person, another hook or one around the execution.
   */
  readonly beforeTool?: (
    at: { readonly call: ToolCall; readonly tool: ToolSpec },
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<BeforeToolDecision | undefined>;
  /** Stand around the execution of a call, retries included; `next` runs it, with other arguments once all before hooks have let them through. */
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
  /** Once in a run of an agent, before its first request. What it writes is in the state that the request is made from. */
  readonly beforeAgent?: (runtime: ModelHookRuntime<Context, State, Interrupts>) => Awaitable<void>;
  /**
   * When an agent ends by itself: with an answer, by a tool, a limit or a hook. `messages` that it returns come behind the
   * answer, and the agent goes on with them instead of ending; then the hooks after it are not called. An end that a hook, a
   * budget or `maxTurns` has made is final: such messages are not taken, and the log says so.
   */
  readonly afterAgent?: (
    at: AgentEnding,
    runtime: WritingRuntime<Context, State>,
  ) => Awaitable<{ readonly messages: readonly Message[] } | undefined | void>;
  /**
   * Choose the tools that the model is shown in this turn, out of these names; nothing leaves them as they are. A call of
   * one that was not shown is not run.
   */
  readonly selectTools?: (
    names: readonly string[],
    runtime: ModelHookRuntime<Context, State, Interrupts>,
  ) => Awaitable<readonly string[] | undefined>;
  /** See or replace the request; runs in the recorded effect of the model call. */
  readonly beforeModel?: (
    request: ModelRequest,
    runtime: ModelHookRuntime<Context, State, Interrupts>,
  ) => Awaitable<ModelRequest | undefined>;
  /**
   * What models may be shown of messages, for hooks that read a conversation beside a request: as this middleware leaves them
   * in `beforeModel`. Gives as many messages or fewer, in their order.
   */
  readonly showMessages?: (
    messages: readonly Message[],
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<readonly Message[]>;
  /**
   * Called before each request that goes out: retries, fallbacks, and what hooks ask of other models among them. It may let
   * the request wait; that is no time of the model. The outermost middleware comes last, right before the request. What it
   * gives is called when the request has ended, well or not.
   */
  readonly beforeRequest?: (
    outgoing: OutgoingRequest,
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<RequestEnded | undefined | void>;
  readonly aroundModel?: (
    request: ModelRequest,
    next: (request: ModelRequest) => Promise<ModelReply>,
    runtime: WritingRuntime<Context, State>,
  ) => Promise<ModelReply>;
  /**
   * Filter an answer while it streams: makes a filter for each answer, which gives what is told in place of a part, or null
   * to withhold it. Whoever reads `text()` gets what was withheld with the whole message, as `afterModel` has left it.
   */
  readonly onModelDelta?: () => (delta: ModelDelta) => ModelDelta | null;
  /** See or replace the reply. */
  readonly afterModel?: (
    reply: ModelReply,
    runtime: EndingRuntime<Context, State>,
  ) => Awaitable<ModelReply | undefined>;
  /**
   * Told of each request that gave no message, as soon as that is known: one that failed, also where the call fails for good,
   * one whose answer a hook has replaced, one that a hook has asked of another model. Entered into a ledger under `key`, it counts
   * once: one that an earlier pass has made is told again as `unrecorded` or `cancelled`, under the key that it had.
   */
  readonly onLostAttempt?: (
    at: { readonly attempt: LostAttempt; readonly key: string },
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<void>;
  /**
   * See the message that the call has become, as it is saved: with what it cost, and the requests that gave nothing. `model` is
   * the id of the model that answered; there is none where a hook did, and nothing was asked. What is entered into a ledger
   * under `key` is known for the same request where a crash loses the message, and the request is told as `unrecorded`.
   */
  readonly onMessage?: (
    at: { readonly message: AssistantMessage; readonly model: string | undefined; readonly key: string },
    runtime: WritingRuntime<Context, State>,
  ) => Awaitable<void>;
}

/** Define middleware; `Context` and `State` are what its hooks read, `Interrupts` the questions that they ask. */
export function defineMiddleware<
  Context = unknown,
  State = unknown,
  const Interrupts extends InterruptShape = InterruptShape,
>(middleware: Middleware<Context, State, Interrupts>): Middleware<Context, State> {
  checkMiddleware([middleware]);
  return Object.freeze(middleware) as Middleware<Context, State>;
}

const hookNames = optionNames<
  Omit<Middleware, "name" | "required" | "asks" | "channels" | "inherited" | "interrupts" | "modelCall">
>({
  beforeTool: true,
  aroundTool: true,
  showArgs: true,
  onToolUpdate: true,
  afterTool: true,
  beforeAgent: true,
  afterAgent: true,
  selectTools: true,
  beforeModel: true,
  showMessages: true,
  beforeRequest: true,
  aroundModel: true,
  onModelDelta: true,
  afterModel: true,
  onLostAttempt: true,
  onMessage: true,
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
  const asking = list.filter((each: Middleware) => each.modelCall !== undefined);
  if (asking.length > 1)
    refuseSaidTwice(
      "a list of middleware",
      asking.map(({ name, modelCall = {} }: Middleware) => [`"${name}"`, modelCall]),
    );
}

function checkOne(middleware: unknown): void {
  if (typeof middleware !== "object" || middleware === null) throw noMiddleware(describeValue(middleware));
  const name: unknown = Reflect.get(middleware, "name");
  if (typeof name !== "string") throw noMiddleware("middleware without a name");
  const owner = `the middleware "${name}"`;
  // An instance of a class may have fields of its own.
  if (isPlainObject(middleware))
    checkOptions(owner, middleware, [
      "name",
      "required",
      "asks",
      "channels",
      "inherited",
      "interrupts",
      "modelCall",
      ...hookNames,
    ]);
  const asks: unknown = Reflect.get(middleware, "asks");
  if (asks !== undefined && !(Array.isArray(asks) && asks.every((key) => typeof key === "string")))
    throw unfitPart(owner, "asks", asks, 'a list of keys, such as ["approve"]');
  const channels: unknown = Reflect.get(middleware, "channels");
  if (channels !== undefined && !isPlainObject(channels))
    throw unfitPart(owner, "channels", channels, "{ name: reduce(…) }");
  const inherited: unknown = Reflect.get(middleware, "inherited");
  if (inherited !== undefined && typeof inherited !== "boolean")
    throw unfitPart(owner, "option inherited", inherited, "true or false");
  checkInterrupts(owner, Reflect.get(middleware, "interrupts"));
  const modelCall: unknown = Reflect.get(middleware, "modelCall");
  if (modelCall !== undefined) {
    checkOptions(`modelCall of ${owner}`, modelCall, callPolicyNames);
    checkCallPolicy(owner, modelCall as ModelCallPolicy);
  }
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

/** Whether it says that its `beforeTool` hook asks a person about calls: a hook that says nothing may be a log. */
export function asksAboutCalls(middleware: Middleware | undefined): boolean {
  return middleware?.beforeTool !== undefined && (middleware.asks?.length ?? 0) > 0;
}

const allowed: BeforeToolDecision = Object.freeze({ action: "allow" });

/** Let the call go on as it is. */
export function allow(): BeforeToolDecision {
  return allowed;
}

/** Let the call go on with other arguments; they are validated again, and hooks that have decided about others decide about these. */
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
