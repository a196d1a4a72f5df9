/** Nodes. A body reads the state and returns changes; an input node also takes its own input. */

import type { Draft } from "immer";
import type { EffectClass } from "../base/effect.ts";
import type { StatewrightError } from "../base/errors.ts";
import type { RunIdentity } from "../base/injection.ts";
import type { Json } from "../base/json.ts";
import type { OpenLongTerm } from "../base/long-term.ts";
import { checkOptions, listOptionNames } from "../base/options.ts";
import type { RetryPolicy } from "../base/retry.ts";
import type { Schema, SchemaInput, SchemaOutput } from "../base/schema.ts";
import type { Clock } from "../base/time.ts";
import type { AssistantMessage } from "../model/message.ts";
import type { Generate } from "../tool/definition/generate.ts";
import type { AnswerOf, InterruptShape, PayloadOf } from "../tool/policy/interrupt.ts";
import type { ToolOutput } from "../tool/result.ts";
import type { AgentTurn } from "./agent-turn.ts";
import type { Goto, Recipe, Send } from "./command.ts";
import type { ModelCall } from "./model-call.ts";
import type { NodeCache } from "./node-cache.ts";

/** Runtime of a recorded step inside a node. */
export interface StepRuntime {
  readonly signal: AbortSignal;
  /** The same in every attempt and after every resume. Pass the key to external services. */
  readonly idempotencyKey: string;
  /** Long-term store, as in the body. Puts of the step are recorded with its result. */
  readonly longTerm: OpenLongTerm;
}

/** Options after an interrupt's key: the payload, optional when none is declared. */
export type InterruptArgs<Payload> = [Payload] extends [never]
  ? [options?: { readonly payload?: unknown }]
  : undefined extends Payload
    ? [options?: { readonly payload?: Payload }]
    : [options: { readonly payload: Payload }];

/** Keys of the declared interrupts; without interrupts an error message as the type of every key. */
export type InterruptKey<Interrupts> = [keyof Interrupts] extends [never]
  ? "declare the interrupt in `interrupts` of defineGraph"
  : keyof Interrupts & string;

/** Runtime of a node's body. */
export interface NodeRuntime<Context = unknown, Interrupts extends InterruptShape = InterruptShape> {
  readonly context: Context;
  readonly run: RunIdentity;
  readonly attempt: number;
  /**
   * The same in every attempt of the body and after every resume, and different in every thread. Pass it to external
   * services in the body of a `once` node; a step has a key of its own.
   */
  readonly idempotencyKey: string;
  /** Fires on cancel, timeout, shutdown, and when the body is abandoned at an interrupt. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /**
   * Namespace of the long-term store: `longTerm("users", id)`. Puts of the body are saved in the transaction of its
   * superstep, and are visible only here until then. A recorded step has its own `longTerm`. Fails with
   * `missing_store` without a store.
   */
  readonly longTerm: OpenLongTerm;
  /**
   * Raises an interrupt and waits for the answer; the process may end meanwhile. After the answer the body restarts
   * from its first line, and this call resolves with the answer; until then the promise stays pending (and `finally`
   * does not run). Rejects with `interrupt_expired` after the expiry when no answer is declared for expiry.
   * Interrupts with the same key in a task are distinguished by their payload. An invalid interrupt fails the node,
   * also inside try/catch.
   */
  readonly interrupt: <Key extends InterruptKey<Interrupts>>(
    key: Key,
    ...shown: InterruptArgs<PayloadOf<Interrupts[Key & keyof Interrupts]>>
  ) => Promise<AnswerOf<Interrupts[Key & keyof Interrupts]>>;
  /**
   * Pauses the run here for debugging, with the status `paused` and the cause `breakpoint`. After a plain resume the
   * body restarts from its first line and passes this call; until then the promise stays pending. `key` is unique in
   * the task. Needs no declaration. Fails with `missing_store` without a store.
   *
   * @example if (state.total > 1_000) await breakpoint("large order");
   */
  readonly breakpoint: (key: string) => Promise<void>;
  /** Runs `work` once across resumes and crashes and returns its recorded result. A key is unique in a task. */
  readonly step: <Value>(
    key: string,
    work: (at: StepRuntime) => Value | Promise<Value>,
    options?: StepOptions<NoInfer<Value>>,
  ) => Promise<Value>;
  /**
   * Calls a model as a recorded step: text streams as run events, and a finished answer is not requested again after
   * a crash. `key` distinguishes several calls of a task; default `model`. Writes of middleware hooks become part
   * of the node's result.
   */
  readonly model: (call: ModelCall | AgentTurn, key?: string) => Promise<AssistantMessage>;
  /**
   * Asks a model as a recorded effect: text streams as run events, and a finished answer is not requested again after a
   * crash. `object` of the result has the type of `output`. Middleware of the graph applies.
   */
  readonly generate: Generate;
  /** Emits a one-line progress message. */
  readonly progress: (text: string) => void;
  /** Emits a custom event on the run's stream; not persisted. */
  readonly emit: (name: string, payload: Json) => void;
  /**
   * In a graph that runs as a tool: emits a partial result of its call, as `update` of a tool does. Undefined in other
   * graphs, and without a reader of the events.
   */
  readonly update?: ((partial: ToolOutput) => void) | undefined;
  /** Resets `idleTimeoutMs`. Progress, events and finished steps also reset the timeout. */
  readonly heartbeat: () => void;
}

/** Options of a recorded step. */
export interface StepOptions<Value = unknown> {
  /**
   * Behavior after a crash during the step; default `idempotent`. A `once` step without a recorded result is in doubt:
   * `reconcile` decides, else the run waits for a person under the key `in_doubt`.
   */
  readonly effect?: EffectClass;
  /**
   * Only for `effect: "once"`: asks the other system whether the step in doubt has happened. Returns the result of the
   * step, or undefined if it has not happened, so that it runs. An error fails the node, and a resume asks again.
   */
  readonly reconcile?: (at: Omit<StepRuntime, "longTerm">) => Value | undefined | Promise<Value | undefined>;
  /** Name in events; default: the key. */
  readonly name?: string;
}

/** Return value of a body: nothing, a partial state, a list, a recipe, or a command. */
export type NodeReturn<State, Update, Drafted = Draft<State>> =
  | undefined
  | void
  | Update
  | Recipe<State, Drafted>
  | Goto<string, Update>
  | Send
  | readonly (Update | Recipe<State, Drafted> | Goto<string, Update> | Send)[];

/** Body of a node. */
export type NodeBody<State, Update, Context, Interrupts extends InterruptShape, Drafted = Draft<State>> = (
  state: State,
  runtime: NodeRuntime<Context, Interrupts>,
) => NodeReturn<State, Update, Drafted> | Promise<NodeReturn<State, Update, Drafted>>;

/** Runtime of a node's error handler: the runtime of a body, and the failure. */
export interface FailureRuntime<Context = unknown, Interrupts extends InterruptShape = InterruptShape, Input = unknown>
  extends NodeRuntime<Context, Interrupts> {
  /** Last failure; its `cause` is the error thrown by the body. Recreated from its record after a resume. */
  readonly error: StatewrightError;
  /** Input of the failed task; undefined for a node without input. */
  readonly input: Input;
}

/** Handler after the last failed attempt; its return value replaces the node's result. */
export type ErrorHandler<
  State,
  Update,
  Context,
  Interrupts extends InterruptShape,
  Input = unknown,
  Returned = NodeReturn<State, Update>,
> = (state: State, failure: FailureRuntime<Context, Interrupts, Input>) => Returned | Promise<Returned>;

/** Argument of the scope of a node cache. */
export interface CacheScopeSource {
  readonly context: unknown;
  readonly run: RunIdentity;
}

/** Cache policy of a node: a cached result replaces a run of the body. */
export interface CachePolicy<State, Input = unknown> {
  /**
   * Returns the cache key. Equal keys mean equal results, among the tasks of this node in this version of the graph and
   * in a single scope.
   */
  readonly key: (state: State, input: Input) => string;
  /**
   * Returns the scope of the result by the context and ids of the run, such as the id of the tenant: only tasks with an
   * equal scope share results. Default: the context by value; a context that is not plain data needs a scope.
   */
  readonly scope?: (source: CacheScopeSource) => string;
  /** Lifetime of a result in milliseconds; default: no limit. */
  readonly ttlMs?: number;
  /** Cache to use; default: in memory, as long as the graph exists. */
  readonly store?: NodeCache;
}

/** Policy of attempts, for a node or for the `defaults` of a graph. */
export interface AttemptPolicy {
  /** Retries a failed body. Programming errors such as TypeError are retried only with `on`. */
  readonly retry?: RetryPolicy;
  /** Timeout of an attempt in milliseconds. */
  readonly timeoutMs?: number;
  /**
   * Maximum idle time of an attempt in milliseconds. A heartbeat, progress, an event, a finished step, or a chunk of
   * a model's answer resets the idle time.
   */
  readonly idleTimeoutMs?: number;
}

/** Policy of a node. */
export interface NodePolicy extends AttemptPolicy {
  /**
   * Behavior after a crash during the body; default `idempotent`: the body runs again. The start of a `once` body is
   * saved first; a started body without a result does not run again until a user reports the outcome.
   */
  readonly effect?: EffectClass;
  /** Defers the node until no other node is runnable; then runs once for all sources. */
  readonly defer?: boolean;
}

/**
 * Declared interrupts and writes of a node, for the body and the error handler. Types, pictures and `checkGraph` use
 * the declaration, and the engine enforces the declaration.
 */
export interface NodeClaims<State, Interrupts extends InterruptShape, Written extends string = keyof State & string> {
  /**
   * Keys of the allowed interrupts; default: all interrupts of the graph. Any other key fails with
   * `unknown_interrupt`.
   */
  readonly interrupts?: readonly (keyof Interrupts & string)[];
  /** Writable channels; default: all channels. Any other channel fails with `undeclared_write`. */
  readonly writes?: readonly Written[];
}

/** Node with a policy. */
export interface NodeWithPolicy<State, Update, Context, Interrupts extends InterruptShape, Drafted = Draft<State>>
  extends NodePolicy,
    NodeClaims<State, Interrupts> {
  readonly run: NodeBody<State, Update, Context, Interrupts, Drafted>;
  readonly cache?: CachePolicy<State>;
  /**
   * Called after the last failed attempt; the return value is the node's result. An error in the handler fails the
   * run.
   */
  readonly onError?: ErrorHandler<State, Update, Context, Interrupts, unknown, NodeReturn<State, Update, Drafted>>;
}

/** Node that receives sends: each task has its own input, whose parsed type is visible only in the body. */
export interface InputNode<
  State,
  Update,
  Context,
  Interrupts extends InterruptShape,
  Given,
  Returned = NodeReturn<State, Update>,
  Written extends string = keyof State & string,
> extends NodePolicy,
    NodeClaims<State, Interrupts, Written> {
  readonly kind: "input";
  readonly input: Schema<Given, unknown>;
  /**
   * The runtime also has `input`. The type omits `input`: with the parameters of {@link NodeBody} the compiler infers
   * parameter types for nodes with a policy.
   */
  readonly run: (state: State, runtime: NodeRuntime<Context, Interrupts>) => Returned | Promise<Returned>;
  readonly cache?: CachePolicy<State>;
  /** Like {@link run}, the type omits the input. */
  readonly onError?: ErrorHandler<State, Update, Context, Interrupts, unknown, Returned>;
}

/** Policy of an input node; its cache and error handler have the input type. */
export interface InputNodePolicy<
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

/** Option names of a node's policy, for every kind of body. */
export const policyOptionNames: readonly string[] = listOptionNames<
  InputNodePolicy<unknown, unknown, unknown, InterruptShape, unknown, unknown, never>
>({
  retry: true,
  timeoutMs: true,
  idleTimeoutMs: true,
  effect: true,
  defer: true,
  interrupts: true,
  writes: true,
  cache: true,
  onError: true,
});

/** Declares a node that receives sends; `input` is the schema of a task's input. */
export function inputNode<
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
  policy: InputNodePolicy<State, Update, Context, Interrupts, SchemaOutput<S>, Handled, Written> = {},
): InputNode<State, Update, Context, Interrupts, SchemaInput<S>, Returned | NoInfer<Handled>, Written> {
  type Node = InputNode<State, Update, Context, Interrupts, SchemaInput<S>, Returned | Handled, Written>;
  checkOptions("the policy of an input node", policy, policyOptionNames);
  const { cache, onError, ...rest } = policy;
  return {
    kind: "input",
    input: input as Schema<SchemaInput<S>, unknown>,
    run: run as Node["run"],
    ...rest,
    ...(cache === undefined ? {} : { cache: cache as CachePolicy<State> }),
    ...(onError === undefined
      ? {}
      : { onError: onError as ErrorHandler<State, Update, Context, Interrupts, unknown, Handled> }),
  };
}
