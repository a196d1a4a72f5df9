/** What a run is given and what it gives: the types of `run`, `resume` and their handle. */
import type { ErrorRecord } from "../../base/errors.ts";
import type { SecretSource } from "../../base/injection.ts";
import type { JsonObject } from "../../base/json.ts";
import type { World } from "../../base/world.ts";
import type { StopKind } from "../../checkpoint/checkpoint.ts";
import type { Store } from "../../checkpoint/store.ts";
import type { Graph } from "../../compile/define-graph.ts";
import type { Migration } from "../../compile/migration.ts";
import type { GraphTypes } from "../../define/graph.ts";
import type { Codec } from "../../state/codec.ts";
import type { InDoubtAnswer, inDoubtKey, NodeInDoubtAnswer } from "../../tool/policy/approval.ts";
import type { AnswerInput, InterruptShape } from "../../tool/policy/interrupt.ts";
import type { EventView, OpenInterrupt, RunEvent } from "../events/events.ts";
import type { Inspector } from "../events/inspection.ts";
import type { TextOptions } from "../events/text-stream.ts";
import type { LetterInput } from "./inbox.ts";

/** What `run` and `resume` have in common. */
export interface CommonOptions {
  readonly store?: Store;
  readonly branch?: string;
  readonly secrets?: SecretSource;
  /** Cancels the run when it fires. */
  readonly signal?: AbortSignal;
  /** Supersteps that one run may take, over all its resumes. Default 1,000. */
  readonly maxSteps?: number;
  /** Whether tools may show partial results and lines of progress. Default true; without them `update` is absent, and `progress` does nothing. */
  readonly toolUpdates?: boolean;
  /** Tasks of one superstep that may run at the same time. Default: no limit. */
  readonly maxConcurrency?: number;
  /** What the failure of a task does to its siblings: they finish and are kept (default), or their signals fire. Tool nodes always finish. */
  readonly onTaskFailure?: "finish" | "abort";
  /** What is done about a `once` effect that has happened already, or may have, on another branch of the thread. Default `ask`. */
  readonly onceElsewhere?: OnceElsewhere;
  /** Clock, chance, schedule and log; the real ones by default. */
  readonly world?: World;
  /** Is told what the run's machines do, in XState's format: a function, or the `inspect` of a standard inspector. */
  readonly inspect?: Inspector;
  /** Turns values into saved text and back; plain data and built-in types by default. */
  readonly codec?: Codec;
  /** How threads that older versions of the graph have written become threads of this one. */
  readonly migrations?: readonly Migration[];
  /** Older versions of the graph: a run that one of them has written and that does not fit this one goes on under that. */
  readonly older?: readonly Graph[];
}

/**
 * How a run on a branch meets a `once` effect of another branch. `ask`: a person says whether what happened there counts
 * here too; a `step`, which cannot ask, fails with `effect_in_doubt`. `reuse`: its recorded outcome is taken over. `repeat`:
 * it is done again.
 */
export type OnceElsewhere = "ask" | "reuse" | "repeat";

/** Where a run pauses, for debugging; a resume goes on with the superstep that it finds. */
export interface BreakpointOption<Nodes extends string> {
  readonly breakpoints?: {
    /** Pause when one of these nodes would run next. */
    readonly before?: readonly Nodes[];
    /** Pause when the result of one of these nodes is saved, unless that ends the run. */
    readonly after?: readonly Nodes[];
  };
}

type ContextOption<Types extends GraphTypes> = unknown extends Types["given"]
  ? { readonly context?: unknown }
  : { readonly context: Types["given"] };
type InputOption<Types extends GraphTypes> =
  Record<never, never> extends Types["input"]
    ? { readonly input?: Types["input"] }
    : { readonly input: Types["input"] };

/** What `run` takes: the input and the context are asked for where the graph needs them. */
export type RunOptions<Types extends GraphTypes> = CommonOptions &
  BreakpointOption<Types["nodes"]> &
  ContextOption<Types> &
  InputOption<Types> &
  StartOptions & { readonly thread?: string };

/** How a new input meets what its thread is doing, and how its run is found again. */
export interface StartOptions {
  /**
   * What happens when the thread has a run that has not ended: it is at work, waits, is paused, failed or has crashed.
   * `reject` (the default) refuses the input with `thread_busy`; `enqueue` puts it behind that run; `interrupt` ends that run
   * at the next boundary, keeps what it finished and declines its open questions; `rollback` ends it and takes back all that
   * it did to the state, not what it did in the world. A machine drawn by hand knows the first two.
   */
  readonly onBusy?: OnBusy;
  /** Idempotency key, unique in the thread: asked for again under the same key, the run is not started again, and its outcome is given. */
  readonly key?: string;
  /** Plain data by which lists find the run. */
  readonly metadata?: JsonObject;
}

/** What a new input does to a thread whose last run has not ended. */
export type OnBusy = "reject" | "enqueue" | StopKind;

/** Answers by interrupt key or id. */
export type Answers<Interrupts extends InterruptShape> = string extends keyof Interrupts
  ? { readonly [id: string]: unknown }
  : {
      readonly [Key in keyof Interrupts]?: AnswerInput<Interrupts[Key]>;
    } & OwnAnswers<keyof Interrupts> & {
        readonly [id: `${string}:${string}`]: unknown;
        /** Questions of the engine about tool calls and nodes of an inner graph. */
        readonly [key: `${string}.approve` | `${string}.${typeof inDoubtKey}`]: unknown;
      };

/** Answers to questions that the engine asks by itself, of which a graph declares nothing. */
type OwnAnswers<Declared> = Omit<{ readonly [inDoubtKey]?: InDoubtAnswer | NodeInDoubtAnswer }, Declared & string>;

/** What `resume` takes. */
export type ResumeOptions<Types extends GraphTypes> = CommonOptions &
  BreakpointOption<Types["nodes"]> &
  ContextOption<Types> & {
    readonly thread: string;
    readonly store: Store;
    /** By interrupt key or id; a question of an inner graph has the key `node.key`. */
    readonly answers?: Answers<Types["interrupts"] & Types["innerInterrupts"]>;
    /** Who answers: kept with the answers, and told to whoever answers after them. */
    readonly by?: string;
  };

interface EndOf<State> {
  readonly run: string;
  readonly thread: string;
  readonly branch: string;
  readonly state: State;
  /** Supersteps that this process took. */
  readonly steps: number;
  /** Bytes of deltas that this process saved. */
  readonly bytes: number;
}

/** How a run ended for now; `queued`: it has not begun, and stands behind another run. A failed run rejects instead. */
export type RunResult<State, Output = unknown> =
  | ({ readonly status: "done"; readonly output: Output } & EndOf<State>)
  | ({
      readonly status: "waiting";
      readonly interrupts: readonly OpenInterrupt[];
    } & EndOf<State>)
  | ({ readonly status: "paused"; readonly cause: ErrorRecord } & EndOf<State>)
  | ({ readonly status: "cancelled"; readonly reason: string } & EndOf<State>)
  /**
   * Only with `onBusy`: the input is saved, and this process is not the one that will come to it now. The run begins when the
   * one before it is done or cancelled: in the process that ends that one, or in an engine. `state` is that of the thread.
   */
  | ({ readonly status: "queued" } & EndOf<State>);

/** What `events` takes. */
export interface EventsOptions {
  /** The number of the last durable event that was seen; 0 for all. Needs a store. */
  readonly after?: number;
  readonly views?: readonly EventView[];
}

/** A run at work. */
export interface RunHandle<State, Output = unknown> {
  /** Of the run that it is to begin; where one is there already under its key, `run` of the result is that one's. */
  readonly id: string;
  readonly thread: string;
  /** How it ends; rejects with the run's error. */
  readonly result: Promise<RunResult<State, Output>>;
  /**
   * Every event from now on, or those of some views; with `after` also what the thread has told since that number, none
   * missed and none twice. Leaving the loop stops the subscription, not the run. A failure that no event tells, such as a
   * refused input, is thrown by the loop.
   */
  events(options?: EventsOptions): AsyncIterableIterator<RunEvent>;
  /** The state after each superstep, as the result would show it. */
  values(): AsyncIterableIterator<State>;
  /**
   * The text that models write, as it comes; not that of agents that a tool runs. Where an answer breaks off and is asked for again, or a hook replaces it, a line
   * says so, or what `voided` gives: no two answers to one request follow each other in silence.
   */
  text(options?: TextOptions): AsyncIterableIterator<string>;
  /** Call `listener` with each event until the returned function is called. */
  on(listener: (event: RunEvent) => void): () => void;
  /** Stop: signals fire, no further effect starts, what finished is kept. */
  cancel(reason?: string): void;
  /** Stop at the end of the superstep, also of an inner graph: the run is `paused`, and a resume goes on. Throws `missing_store` without a store. */
  drain(reason?: string): void;
  /**
   * Say something to the run while it works: a text, or messages with the role user or system. It stands in the channel
   * `messages` after the answers of the tool calls at work, before the next request; calls of theirs that have not begun are
   * skipped, unless their tool node or tool says otherwise. What no boundary of the run takes in waits for the next run of
   * the thread. Resolves when it is kept: in the store, so that it outlives the process. Rejects with `invalid_input` for
   * other messages, `invalid_option` for a graph without the channel, `missing_store` when a run without a store is over.
   */
  steer(input: LetterInput): Promise<void>;
  /** As {@link steer}, taken in only when the run would end otherwise: it goes on instead. */
  followUp(input: LetterInput): Promise<void>;
}
