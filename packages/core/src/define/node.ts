/** Nodes: what runs. A body reads the state and returns what it changes; a task node also takes an input of its own. */
import type { EffectClass } from "../base/effect.ts";
import type { StatewrightError } from "../base/errors.ts";
import type { RunIdentity } from "../base/injection.ts";
import type { Json } from "../base/json.ts";
import type { OpenLongTerm } from "../base/long-term.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { RetryPolicy } from "../base/retry.ts";
import type { Schema, SchemaInput, SchemaOutput } from "../base/schema.ts";
import type { Clock } from "../base/time.ts";
import type { ModelCallPolicy } from "../model/call-policy.ts";
import type { AgentEnd, AssistantMessage } from "../model/message.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import type { AnswerOf, InterruptShape, PayloadOf } from "../tool/policy/interrupt.ts";
import type { Middleware } from "../tool/policy/middleware.ts";
import type { Goto, Recipe, Send } from "./command.ts";
import type { NodeCache } from "./node-cache.ts";

/** What a recorded step inside a node gets. */
export interface StepRuntime {
  readonly signal: AbortSignal;
  /** The same in every attempt and after every resume: give it to the other side. */
  readonly idempotencyKey: string;
  /** The long-term store, as in the body. What the step puts is recorded with its result. */
  readonly longTerm: OpenLongTerm;
}

/**
 * A call of a model: which, with what, and the middleware whose model hooks stand around it. Without `retry` a request is made
 * once; what middleware says of `retry`, `timeouts` and `fallback` (its `modelCall`) stands above what the call says.
 */
export interface ModelCall extends ModelCallPolicy {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly middleware?: readonly Middleware[];
}

/** A turn of an agent: a call of a model with the hooks at the two ends of the agent's run. The state has the channel `messages`. */
export interface AgentTurn {
  /** Middleware whose `beforeAgent` and `afterAgent` hooks stand around the run of the agent. */
  readonly middleware?: readonly Middleware[];
  /** Make the call, from the state as `beforeAgent` has left it. It is made anew in every attempt and after every resume. */
  readonly prepare: (state: never) => ModelCall | Promise<ModelCall>;
  readonly ends: AgentEnds;
  readonly limit?: TurnLimit | undefined;
}

/** How often an agent may ask its model between two words of people; then it ends with these. */
export interface TurnLimit {
  readonly turns: number;
  readonly text: string;
  readonly ended: AgentEnd;
}

/** Tells how an agent ends in a state, which holds the answer; nothing where it goes on. Asked where there are `afterAgent` hooks, but not of an answer that calls tools: an agent answers calls before it ends. */
export type AgentEnds = (state: never) => AgentEnd | undefined | Promise<AgentEnd | undefined>;

/** What follows the key of a question: its payload, which may be left out where none is declared. */
export type Shown<Payload> = [Payload] extends [never]
  ? [options?: { readonly payload?: unknown }]
  : undefined extends Payload
    ? [options?: { readonly payload?: Payload }]
    : [options: { readonly payload: Payload }];

/** What a node's body gets beside the state. */
export interface NodeRuntime<Context = unknown, Interrupts extends InterruptShape = InterruptShape> {
  readonly context: Context;
  readonly run: RunIdentity;
  readonly attempt: number;
  /** Fires on cancel, timeout, shutdown, and when the body is abandoned at an interrupt. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /**
   * A namespace of the long-term store: `longTerm("users", id)`. What the body puts is saved in the transaction of its superstep, or not at all;
   * until then it is seen here only. A recorded step puts through its own. Fails with `missing_store` without a store.
   */
  readonly longTerm: OpenLongTerm;
  /**
   * Ask a person and wait: the process may end meanwhile. The body starts again from its first line when the answer is
   * there and gets it from here; until then this promise never settles (and `finally` does not run). It rejects with
   * `interrupt_expired` when the time of the question was over and no answer is declared for that. Several questions of
   * one key in a task are told apart by what they show. One that cannot be asked fails the node, also inside try/catch.
   */
  readonly interrupt: <Key extends keyof Interrupts & string>(
    key: Key,
    ...shown: Shown<PayloadOf<Interrupts[Key]>>
  ) => Promise<AnswerOf<Interrupts[Key]>>;
  /** Run `work` once across resumes and crashes and hand back its recorded result. A key stands once in a task. */
  readonly step: <Value>(
    key: string,
    work: (at: StepRuntime) => Value | Promise<Value>,
    options?: StepOptions,
  ) => Promise<Value>;
  /**
   * Ask a model, as a recorded step: its text streams on the run's events, and a finished answer is not asked for again
   * after a crash. `key` tells several calls of one task apart; the default is `model`. What the hooks of its middleware write
   * becomes part of the node's result.
   */
  readonly model: (call: ModelCall | AgentTurn, key?: string) => Promise<AssistantMessage>;
  /** Say in one line what is being done. */
  readonly progress: (text: string) => void;
  /** Send an event of your own on the run's stream; it is not kept. */
  readonly emit: (name: string, payload: Json) => void;
  /** Show that the body is alive, where an `idleTimeoutMs` watches it. Progress, events and finished steps show it too. */
  readonly heartbeat: () => void;
}

/** How a recorded step is treated. */
export interface StepOptions {
  /** What may happen after a crash in its middle; default `idempotent`. */
  readonly effect?: EffectClass;
  /** How it is named in events; default its key. */
  readonly name?: string;
}

/** What a body may return: nothing, a partial state, a list of them, a recipe, or a command. */
export type NodeReturn<State, Update> =
  | undefined
  | void
  | Update
  | Recipe<State>
  | Goto<string, Update>
  | Send
  | readonly (Update | Recipe<State> | Goto<string, Update> | Send)[];

/** The body of a node. */
export type NodeBody<State, Update, Context, Interrupts extends InterruptShape> = (
  state: State,
  runtime: NodeRuntime<Context, Interrupts>,
) => NodeReturn<State, Update> | Promise<NodeReturn<State, Update>>;

/** What the error handler of a node gets beside the state: the failure, and what a body gets. */
export interface FailureRuntime<Context = unknown, Interrupts extends InterruptShape = InterruptShape, Input = unknown>
  extends NodeRuntime<Context, Interrupts> {
  /** The last failure; its `cause` is what the body threw. After a resume it is made again from its record. */
  readonly error: StatewrightError;
  /** What the failed task was given; undefined for a node that takes no input. */
  readonly input: Input;
}

/** What stands in for a node's result after its last attempt has failed. */
export type ErrorHandler<
  State,
  Update,
  Context,
  Interrupts extends InterruptShape,
  Input = unknown,
  Returned = NodeReturn<State, Update>,
> = (state: State, failure: FailureRuntime<Context, Interrupts, Input>) => Returned | Promise<Returned>;

/** When a node's result is taken from a cache instead of running its body. */
export interface CachePolicy<State, Input = unknown> {
  /** Equal texts mean equal results, among the tasks of this node in this version of the graph. */
  readonly key: (state: State, input: Input) => string;
  /** How long a result is good for, in milliseconds; without end when absent. */
  readonly ttlMs?: number;
  /** Where results are kept; by default in memory, as long as the graph. */
  readonly store?: NodeCache;
}

/** What a node and the `defaults` of a graph may both say. */
export interface AttemptPolicy {
  /** Try a failed body again. Programming errors such as TypeError are not tried again unless `on` says so. */
  readonly retry?: RetryPolicy;
  /** Time limit of one attempt in milliseconds. */
  readonly timeoutMs?: number;
  /** How long one attempt may go without a sign of life, in milliseconds: a heartbeat, progress, an event, a finished step, a part of a model's answer. */
  readonly idleTimeoutMs?: number;
}

/** How a node is run. */
export interface NodePolicy extends AttemptPolicy {
  /**
   * What may happen after a crash in the body's middle; default `idempotent`: it runs again. The start of a `once` body is
   * saved before it begins; a body that started and has no result is not run again until a person has said what happened.
   */
  readonly effect?: EffectClass;
  /** Run only when nothing else is runnable, once for all that led here meanwhile. */
  readonly defer?: boolean;
}

/** What a node may do, body and error handler alike, where it says so: then types, pictures and `checkGraph` know it, and nothing else is let through. */
export interface NodeClaims<State, Interrupts extends InterruptShape, Written extends string = keyof State & string> {
  /** Keys of the questions that it may ask; all that the graph declares when absent. Another fails with `unknown_interrupt`. */
  readonly asks?: readonly (keyof Interrupts & string)[];
  /** Channels that it may write; all of the state when absent. Another fails with `undeclared_write`. */
  readonly writes?: readonly Written[];
}

/** A node with a policy. */
export interface NodeWithPolicy<State, Update, Context, Interrupts extends InterruptShape>
  extends NodePolicy,
    NodeClaims<State, Interrupts> {
  readonly run: NodeBody<State, Update, Context, Interrupts>;
  readonly cache?: CachePolicy<State>;
  /** Called after the last attempt has failed; what it returns is the node's result. Its own failure fails the run. */
  readonly onError?: ErrorHandler<State, Update, Context, Interrupts>;
}

/** A node that receives sends: each task has an input of its own, of which only the body knows the parsed type. */
export interface TaskNode<
  State,
  Update,
  Context,
  Interrupts extends InterruptShape,
  Given,
  Returned = NodeReturn<State, Update>,
  Written extends string = keyof State & string,
> extends NodePolicy,
    NodeClaims<State, Interrupts, Written> {
  readonly kind: "task";
  readonly input: Schema<Given, unknown>;
  /** Its runtime has the `input` too. The type does not say so: with the parameters of {@link NodeBody} a node with a policy gets theirs. */
  readonly run: (state: State, runtime: NodeRuntime<Context, Interrupts>) => Returned | Promise<Returned>;
  readonly cache?: CachePolicy<State>;
  /** As with {@link run}, the type leaves out what the input is. */
  readonly onError?: ErrorHandler<State, Update, Context, Interrupts, unknown, Returned>;
}

/** How a task node is run; its cache and its error handler know the input. */
export interface TaskPolicy<
  State,
  Update,
  Context,
  Interrupts extends InterruptShape,
  Input,
  Handled,
  Written extends string = keyof State & string,
> extends NodePolicy,
    NodeClaims<State, Interrupts, Written> {
  readonly cache?: CachePolicy<State, Input>;
  readonly onError?: ErrorHandler<State, Update, Context, Interrupts, Input, Handled>;
}

/** The options of a node's policy, whatever its body is. */
export const policyNames: readonly string[] = optionNames<
  TaskPolicy<unknown, unknown, unknown, InterruptShape, unknown, unknown, never>
>({
  retry: true,
  timeoutMs: true,
  idleTimeoutMs: true,
  effect: true,
  defer: true,
  asks: true,
  writes: true,
  cache: true,
  onError: true,
});

/** A node that receives sends; `input` is the schema of what a task is given. */
export function task<
  S extends Schema,
  State,
  Update,
  Context,
  Interrupts extends InterruptShape,
  Returned extends NodeReturn<State, Update>,
  Handled extends NodeReturn<State, Update> = undefined,
  Written extends keyof State & string = keyof State & string,
>(
  input: S,
  run: (
    state: State,
    runtime: NodeRuntime<Context, Interrupts> & { readonly input: SchemaOutput<S> },
  ) => Returned | Promise<Returned>,
  policy: TaskPolicy<State, Update, Context, Interrupts, SchemaOutput<S>, Handled, Written> = {},
): TaskNode<State, Update, Context, Interrupts, SchemaInput<S>, Returned | NoInfer<Handled>, Written> {
  type Node = TaskNode<State, Update, Context, Interrupts, SchemaInput<S>, Returned | Handled, Written>;
  checkOptions("the policy of a task node", policy, policyNames);
  const { cache, onError, ...rest } = policy;
  return {
    kind: "task",
    input: input as Schema<SchemaInput<S>, unknown>,
    run: run as Node["run"],
    ...rest,
    ...(cache === undefined ? {} : { cache: cache as CachePolicy<State> }),
    ...(onError === undefined
      ? {}
      : { onError: onError as ErrorHandler<State, Update, Context, Interrupts, unknown, Handled> }),
  };
}
