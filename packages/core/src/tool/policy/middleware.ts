/**
 * Middleware of models and tools. Order: before hooks in order of registration, around hooks with the first
 * outermost, after hooks in reverse.
 */

import type { StatewrightError } from "../../base/errors.ts";
import type { RunIdentity } from "../../base/injection.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { describeValue, isPlainObject, type Json } from "../../base/json.ts";
import type { OpenLongTerm } from "../../base/long-term.ts";
import { checkFlag, checkFunction, checkOptions, listOptionNames } from "../../base/options.ts";
import type { Clock } from "../../base/time.ts";
import {
  callPolicyNames,
  checkCallPolicy,
  checkDuplicatePolicy,
  type ModelCallPolicy,
} from "../../model/call-policy.ts";
import type { AgentEnd, AssistantMessage, FailedAttempt, Message, Usage } from "../../model/message.ts";
import type { ModelDelta, ModelReply, ModelRequest } from "../../model/model.ts";
import type { AnyModel } from "../../model/model-source.ts";
import type { Channel } from "../../state/channel.ts";
import type { ToolCall, ToolSpec } from "../definition/tool.ts";
import type { ToolOutput, ToolResult } from "../result.ts";
import { approveKey } from "./approval.ts";
import { type AnswerOf, checkInterrupts, type InterruptShape, type PayloadOf } from "./interrupt.ts";
import type { OpenLedger } from "./ledger.ts";

/** Decision of a `beforeTool` hook about a call. */
export type BeforeToolDecision =
  | { readonly action: "allow" }
  | { readonly action: "modify"; readonly args: unknown }
  | { readonly action: "deny"; readonly reason: string; readonly terminate?: boolean; readonly fail?: boolean }
  | { readonly action: "respond"; readonly output: ToolOutput | string }
  | { readonly action: "abort"; readonly reason: string }
  | ({ readonly action: "interrupt"; readonly key: string; readonly payload: Json } & AskOptions);

/** Expiry of an approval. */
export interface AskOptions {
  /** Time to answer in milliseconds. Default: no expiry. */
  readonly expiresMs?: number;
  /** Decision after expiry. Default `deny`: the model reads that the approval expired. */
  readonly onExpire?: "deny" | "allow";
}

/** Runtime of every hook. */
export interface MiddlewareRuntime<Context = unknown, State = unknown> {
  readonly context: Context;
  readonly state: State;
  readonly run: RunIdentity;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Waits by the clock of the run; aborted when the run ends. */
  readonly wait: (ms: number) => Promise<void>;
  /** Opens the ledger of a channel of the middleware: shared by hooks of parallel calls and inner graphs. */
  readonly ledger: OpenLedger;
  /** Returns a value without the secrets of the run, for data that leaves the run, such as a line of a log. */
  readonly redact: <Value>(value: Value) => Value;
  /** Emits a custom event on the stream of the run; not stored. */
  readonly emit: (name: string, payload: Json) => void;
}

/** Runtime of model hooks. `state` includes the writes of this hook and of the hooks before. */
export interface WritingRuntime<Context = unknown, State = unknown> extends MiddlewareRuntime<Context, State> {
  /** Id of the requested model; undefined in `beforeAgent` and `afterAgent`. */
  readonly model: string | undefined;
  /**
   * Writes channels of the graph. The writes are saved with the surrounding effect, in the same superstep, and
   * written again by a replay, which runs no hooks. Fails with `unknown_channel` for an unknown channel.
   */
  readonly write: (update: Readonly<Record<string, unknown>>) => void;
  /**
   * Calls another model, such as a small model for summaries. The answer is recorded by `key`: after a crash the
   * recorded answer is used. The call does not stream and adds no message to the conversation. Its usage is reported
   * by `model.auxiliary_called` and, around a model call, in `failedAttempts` of the message with the kind `auxiliary`.
   * Default: 3 attempts.
   */
  readonly ask: (key: string, call: AuxiliaryCall) => Promise<ModelReply>;
  /** Long-term store. Writes are recorded and saved with the surrounding effect. Fails with `missing_store`. */
  readonly longTerm: OpenLongTerm;
}

/** Auxiliary model call of a hook. */
export interface AuxiliaryCall extends ModelCallPolicy {
  readonly model: AnyModel;
  readonly request: ModelRequest;
}

/** Runtime of hooks that may end the agent. */
export interface EndingRuntime<Context = unknown, State = unknown> extends WritingRuntime<Context, State> {
  /**
   * Ends the agent with this text as its answer: the model is not called, or its reply is dropped, and no other hook
   * except `afterAgent` runs. `by` names the cause, such as `budget` or `guardrail`, and is stored in `ended` of the
   * message.
   */
  readonly end: (text: string, ended: AgentEnd) => undefined;
}

/** Runtime of hooks before the model call. */
export interface ModelHookRuntime<
  Context = unknown,
  State = unknown,
  Interrupts extends InterruptShape = InterruptShape,
> extends EndingRuntime<Context, State> {
  /**
   * Interrupts the run for a person's answer, under a key of the middleware's `interrupts`. The process may end while
   * the interrupt is open. After the answer, all hooks run again from the first, and this call returns the answer.
   * Before that, the promise stays pending.
   */
  readonly interrupt: <Key extends keyof Interrupts & string>(
    key: Key,
    question?: HookInterrupt<PayloadOf<Interrupts[Key]>>,
  ) => Promise<AnswerOf<Interrupts[Key]>>;
}

/** Payload of a hook's interrupt, and its expiry if not declared. */
export interface HookInterrupt<Payload = unknown> {
  readonly payload?: Payload;
  /** Time to answer in milliseconds. */
  readonly expiresMs?: number;
  /** Answer used after expiry. Without `onExpire` the hook gets the error `interrupt_expired`. */
  readonly onExpire?: unknown;
}

/** Argument of `afterAgent`. */
export interface AgentEnding {
  /** Conversation, including the final answer. */
  readonly messages: readonly Message[];
  /** Cause of the end. */
  readonly ended: AgentEnd;
  /**
   * Returns the conversation as shown to models, by `showMessages` of all middleware. Use for data that leaves the
   * run, such as a request to another model.
   */
  readonly getShownMessages: () => Promise<readonly Message[]>;
}

/** A request before sending; the same object for all hooks. */
export interface OutgoingRequest {
  /** Id of the requested model. */
  readonly model: string;
  readonly request: ModelRequest;
}

/** Callback for the end of a request, with its known usage. `wentOut` is false when the request was not sent. */
export type RequestEndListener = (usage: Usage | undefined, wentOut: boolean) => void;

type Awaitable<Value> = Value | Promise<Value>;

type DecisionHint = "return decide.allow(), decide.deny(reason), another decision, or nothing";

/**
 * Hook that decides about a call before it runs. The first parameter exists only for compiler messages, which show it
 * when a hook returns another value.
 */
export interface BeforeToolHook<_Returns extends string = DecisionHint, Context = unknown, State = unknown> {
  // biome-ignore lint/style/useShorthandFunctionType: compiler messages show the name and the parameters of the interface
  (
    at: { readonly call: ToolCall; readonly tool: ToolSpec },
    runtime: MiddlewareRuntime<Context, State>,
  ): Awaitable<BeforeToolDecision | undefined | void>;
}

/**
 * Hooks by name; all optional. An error in a tool hook fails the run if the middleware is `required`, and is logged
 * otherwise. An error in a model or agent hook fails its node.
 */
export interface Middleware<Context = unknown, State = unknown, Interrupts extends InterruptShape = InterruptShape> {
  /** Name of the middleware in events and errors. */
  readonly name: string;
  /** True when an error in a tool hook must fail the run. Default false. */
  readonly required?: boolean;
  /**
   * Channels for data of the middleware, written by its hooks and by the `command` of results. Agents add the
   * channels to their state; graphs must declare them.
   */
  readonly channels?: Readonly<Record<string, Channel>>;
  /**
   * Applies the middleware to inner graphs too, such as sub-agents, with the channels and interrupts of the declaring
   * graph.
   */
  readonly inherited?: boolean;
  /**
   * Timeouts, retries and fallbacks of model calls. Not a hook, so that policies do not multiply: for each part the
   * policy of the outermost middleware applies, before the policy of the call.
   */
  readonly modelCall?: ModelCallPolicy;
  /**
   * Interrupts of the hooks. Agents add them to their graph; a graph without these interrupts is refused at definition.
   * Middleware with `{ approve: approval }` and a `beforeTool` hook can request approval of tool calls, as tools with
   * `confirm: "always"` require.
   */
  readonly interrupts?: Interrupts;
  /**
   * Decides about a call before it runs, once for all its retries. After a person's answer the call is prepared
   * again. The hook runs again when a person, another hook or an around hook changes the arguments after its
   * decision.
   */
  readonly beforeTool?: BeforeToolHook<DecisionHint, Context, State>;
  /**
   * Wraps the execution of a call, including retries. `next` runs the call; changed arguments pass all before hooks
   * first.
   */
  readonly aroundTool?: (
    at: { readonly call: ToolCall; readonly tool: ToolSpec },
    next: (call: ToolCall) => Promise<ToolResult>,
    runtime: MiddlewareRuntime<Context, State>,
  ) => Promise<ToolResult>;
  /** Returns the arguments for events and interrupts. If the hook throws, the arguments are hidden. */
  readonly showArgs?: (at: { readonly call: ToolCall; readonly tool: ToolSpec; readonly args: Json }) => Json;
  /** Filters a partial result or a progress text (as content); null drops it. */
  readonly onToolUpdate?: (at: { readonly call: ToolCall; readonly partial: ToolOutput }) => ToolOutput | null;
  /**
   * Observes or replaces the result, also of denied, skipped, cancelled and unknown calls; an unknown call has no
   * `tool`.
   */
  readonly afterTool?: (
    at: { readonly call: ToolCall; readonly tool: ToolSpec | undefined; readonly result: ToolResult },
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<ToolResult | undefined | void>;
  /** Runs once in a run of an agent, before the first request. Its writes are in the state of that request. */
  readonly beforeAgent?: (runtime: ModelHookRuntime<Context, State, Interrupts>) => Awaitable<void>;
  /**
   * Runs when an agent ends with an answer, by a tool, a limit or a hook. Returned `messages` are added after the
   * answer, and the agent continues instead of ending; then the hooks after this hook are skipped. An end by a hook,
   * a budget or `maxTurns` is final: returned messages are ignored and logged.
   */
  readonly afterAgent?: (
    at: AgentEnding,
    runtime: WritingRuntime<Context, State>,
  ) => Awaitable<{ readonly messages: readonly Message[] } | undefined | void>;
  /**
   * Selects the tools to advertise in this turn from `names`; undefined advertises all. Calls of other tools do not
   * run.
   */
  readonly selectTools?: (
    names: readonly string[],
    runtime: ModelHookRuntime<Context, State, Interrupts>,
  ) => Awaitable<readonly string[] | undefined | void>;
  /** Observes or replaces the request, inside the recorded effect of the model call. */
  readonly beforeModel?: (
    request: ModelRequest,
    runtime: ModelHookRuntime<Context, State, Interrupts>,
  ) => Awaitable<ModelRequest | undefined | void>;
  /**
   * Filters messages for hooks that read a conversation outside of a request, in the same way as `beforeModel` of
   * this middleware. Must return the same or fewer messages, in order.
   */
  readonly showMessages?: (
    messages: readonly Message[],
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<readonly Message[]>;
  /**
   * Runs before each request, including retries, fallbacks and auxiliary calls. May delay the request; the delay does
   * not count against model timeouts. The outermost middleware runs last, immediately before the request. The
   * returned callback runs at the end of the request, successful or not.
   */
  readonly beforeRequest?: (
    outgoing: OutgoingRequest,
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<RequestEndListener | undefined | void>;
  /** Wraps a model call, including retries. `next` calls the model. */
  readonly aroundModel?: (
    request: ModelRequest,
    next: (request: ModelRequest) => Promise<ModelReply>,
    runtime: WritingRuntime<Context, State>,
  ) => Promise<ModelReply>;
  /**
   * Filters a streamed answer: creates a filter per answer, which returns a replacement of each part, or null to drop
   * the part. Readers of `text()` get dropped parts with the complete message, as returned by `afterModel`.
   */
  readonly onModelDelta?: () => (delta: ModelDelta) => ModelDelta | null;
  /** Observes or replaces the reply. */
  readonly afterModel?: (
    reply: ModelReply,
    runtime: EndingRuntime<Context, State>,
  ) => Awaitable<ModelReply | undefined | void>;
  /**
   * Runs for each request without a message, as soon as its end is known: a failed request (also when the call fails
   * finally), a request whose answer a hook replaced, and an auxiliary call. Enter the usage into a ledger under
   * `key` to count it once: a request of an earlier execution is reported again as `unrecorded` or `cancelled`, under
   * the same key.
   */
  readonly onFailedAttempt?: (
    at: { readonly attempt: FailedAttempt; readonly key: string },
    runtime: MiddlewareRuntime<Context, State>,
  ) => Awaitable<void>;
  /**
   * Observes the saved message of a model call, with its usage and failed attempts. `model` is the id of the
   * answering model; undefined when a hook answered without a request. If a crash loses the message, the request is
   * reported as `unrecorded`, with the ledger entry under the same `key`.
   */
  readonly onMessage?: (
    at: { readonly message: AssistantMessage; readonly model: string | undefined; readonly key: string },
    runtime: WritingRuntime<Context, State>,
  ) => Awaitable<void>;
}

/**
 * Defines middleware. `Context` and `State` are the types its hooks read; `Interrupts` are the declared interrupts.
 */
export function defineMiddleware<
  Context = unknown,
  State = unknown,
  const Interrupts extends InterruptShape = InterruptShape,
>(middleware: Middleware<Context, State, Interrupts>): Middleware<Context, State> {
  checkMiddleware([middleware]);
  return Object.freeze(middleware) as Middleware<Context, State>;
}

const hookNames = listOptionNames<
  Omit<Middleware, "name" | "required" | "channels" | "inherited" | "interrupts" | "modelCall">
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
  onFailedAttempt: true,
  onMessage: true,
});

/**
 * Throws `invalid_option` for a value other than a list of middleware, and for unknown hooks, which would never run.
 */
export function checkMiddleware(list: unknown): void {
  if (!Array.isArray(list)) {
    throw invalidOption({
      where: "middleware",
      expected: "a list of middleware",
      got: list,
      fix: "Pass a list of results of defineMiddleware: [middleware, …]",
    });
  }
  list.forEach(checkSingleMiddleware);
  const withPolicy = list.filter((each: Middleware) => each.modelCall !== undefined);
  if (withPolicy.length > 1)
    checkDuplicatePolicy(
      "the list of middleware",
      withPolicy.map(({ name, modelCall = {} }: Middleware) => [`"${name}"`, modelCall]),
    );
}

function checkSingleMiddleware(middleware: unknown): void {
  if (typeof middleware !== "object" || middleware === null) throw createMiddlewareError(describeValue(middleware));
  const name: unknown = Reflect.get(middleware, "name");
  if (typeof name !== "string") throw createMiddlewareError("middleware without a name");
  const owner = `the middleware "${name}"`;
  // An instance of a class may have additional fields.
  if (isPlainObject(middleware))
    checkOptions(owner, middleware, [
      "name",
      "required",
      "channels",
      "inherited",
      "interrupts",
      "modelCall",
      ...hookNames,
    ]);
  const channels: unknown = Reflect.get(middleware, "channels");
  if (channels !== undefined && !isPlainObject(channels))
    throw invalidOption({ where: owner, option: "channels", expected: "{ name: channel.reduce(…) }", got: channels });
  const inherited: unknown = Reflect.get(middleware, "inherited");
  if (inherited !== undefined) checkFlag(owner, { inherited });
  checkInterrupts(owner, Reflect.get(middleware, "interrupts"));
  const modelCall: unknown = Reflect.get(middleware, "modelCall");
  if (modelCall !== undefined) {
    checkOptions(`modelCall of ${owner}`, modelCall, callPolicyNames);
    checkCallPolicy(owner, modelCall as ModelCallPolicy);
  }
  checkFunction(owner, Object.fromEntries(hookNames.map((hook) => [hook, Reflect.get(middleware, hook)])));
}

function createMiddlewareError(found: string): StatewrightError {
  const fix = "Use defineMiddleware({ name, … })";
  return invalidOption({ where: "middleware", expected: "a result of defineMiddleware", found, fix });
}

/**
 * Returns true if the middleware has a `beforeTool` hook and declares the interrupt `approve`. Without the interrupt the
 * hook may be a log.
 */
export function canRequestApproval(middleware: Middleware | undefined): boolean {
  return middleware?.beforeTool !== undefined && Object.hasOwn(middleware.interrupts ?? {}, approveKey);
}
