/** Nodes: what runs. A body reads the state and returns what it changes; a task node also takes an input of its own. */
import type { EffectClass } from "../base/effect.ts";
import type { RunIdentity } from "../base/injection.ts";
import type { Json } from "../base/json.ts";
import type { RetryPolicy } from "../base/retry.ts";
import type { Schema, SchemaInput, SchemaOutput } from "../base/schema.ts";
import type { Clock } from "../base/world.ts";
import type { AssistantMessage } from "../model/message.ts";
import type { Model, ModelRequest } from "../model/model.ts";
import type { Middleware } from "../tool/middleware.ts";
import type { Goto, Recipe, Send } from "./command.ts";
import type { AnswerOf, InterruptShape, PayloadOf } from "./interrupt.ts";

/** What a recorded step inside a node gets. */
export interface StepRuntime {
  readonly signal: AbortSignal;
  /** The same in every attempt and after every resume: give it to the other side. */
  readonly idempotencyKey: string;
}

/** A call of a model: which, with what, and the middleware whose model hooks stand around it. */
export interface ModelCall {
  readonly model: Model;
  readonly request: ModelRequest;
  readonly middleware?: readonly Middleware[];
}

/** What a node's body gets beside the state. */
export interface NodeRuntime<Context = unknown, Interrupts extends InterruptShape = InterruptShape> {
  readonly context: Context;
  readonly run: RunIdentity;
  readonly attempt: number;
  /** Fires on cancel, timeout, shutdown, and when the body is abandoned at an interrupt. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /**
   * Ask a person and wait: the process may end meanwhile. The body starts again from its first line when the answer is
   * there and gets it from here; until then this promise never settles (and `finally` does not run).
   */
  readonly interrupt: <Key extends keyof Interrupts & string>(
    key: Key,
    options?: { readonly payload?: PayloadOf<Interrupts[Key]> },
  ) => Promise<AnswerOf<Interrupts[Key]>>;
  /** Run `work` once across resumes and crashes and hand back its recorded result. A key stands once in a task. */
  readonly step: <Value>(
    key: string,
    work: (at: StepRuntime) => Value | Promise<Value>,
    options?: StepOptions,
  ) => Promise<Value>;
  /**
   * Ask a model, as a recorded step: its text streams on the run's events, and a finished answer is not asked for again
   * after a crash. `key` tells several calls of one task apart; the default is `model`.
   */
  readonly model: (call: ModelCall, key?: string) => Promise<AssistantMessage>;
  /** Say in one line what is being done. */
  readonly progress: (text: string) => void;
  /** Send an event of your own on the run's stream; it is not kept. */
  readonly emit: (name: string, payload: Json) => void;
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

/** How a node is run. */
export interface NodePolicy {
  /** Try a failed body again. Programming errors such as TypeError are not tried again unless `on` says so. */
  readonly retry?: RetryPolicy;
  /** Time limit of one attempt in milliseconds. */
  readonly timeoutMs?: number;
}

/** A node with a policy. */
export interface NodeWithPolicy<Body> extends NodePolicy {
  readonly run: Body;
}

/** A node that receives sends: each task has an input of its own, of which only the body knows the parsed type. */
export interface TaskNode<
  State,
  Update,
  Context,
  Interrupts extends InterruptShape,
  Given,
  Returned = NodeReturn<State, Update>,
> extends NodePolicy {
  readonly kind: "task";
  readonly input: Schema<Given, unknown>;
  /** Its runtime has the `input` too. The type does not say so: with the parameters of {@link NodeBody} a node with a policy gets theirs. */
  readonly run: (state: State, runtime: NodeRuntime<Context, Interrupts>) => Returned | Promise<Returned>;
}

/** A node that receives sends; `input` is the schema of what a task is given. */
export function task<
  S extends Schema,
  State,
  Update,
  Context,
  Interrupts extends InterruptShape,
  Returned extends NodeReturn<State, Update>,
>(
  input: S,
  run: (
    state: State,
    runtime: NodeRuntime<Context, Interrupts> & { readonly input: SchemaOutput<S> },
  ) => Returned | Promise<Returned>,
  policy: NodePolicy = {},
): TaskNode<State, Update, Context, Interrupts, SchemaInput<S>, Returned> {
  return {
    kind: "task",
    input: input as Schema<SchemaInput<S>, unknown>,
    run: run as TaskNode<State, Update, Context, Interrupts, SchemaInput<S>, Returned>["run"],
    ...policy,
  };
}
