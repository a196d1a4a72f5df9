/** Options, results and handle types of `run` and `resume`. */
import type { ErrorRecord } from "../../../base/errors.ts";
import type { SecretSource } from "../../../base/injection.ts";
import type { Json, JsonObject } from "../../../base/json.ts";
import type { World } from "../../../base/world.ts";
import type { StopKind } from "../../../checkpoint/checkpoint.ts";
import type { Store } from "../../../checkpoint/store.ts";
import type { Graph } from "../../../compile/graph.ts";
import type { Migration } from "../../../compile/migration.ts";
import type { GraphTypes } from "../../../define/graph.ts";
import type { ModelsOption } from "../../../model/model-source.ts";
import type { Codec } from "../../../state/codec.ts";
import type { InDoubtAnswer, inDoubtKey, NodeInDoubtAnswer, StepInDoubtAnswer } from "../../../tool/policy/approval.ts";
import type { AnswerInput, InterruptShape, ShownPayload } from "../../../tool/policy/interrupt.ts";
import type { EventOverflow } from "../../events/event-queue.ts";
import type { EventView } from "../../events/events.ts";
import type { Inspector } from "../../events/inspection.ts";
import type { Relay } from "../../events/relay.ts";
import type { OpenInterrupt, RunEvent } from "../../events/run-event.ts";
import type { InboxInput } from "../inbox/inbox-input.ts";
import type { TextOptions } from "../text-stream.ts";

/** Options of both `run` and `resume`. */
export interface CommonOptions extends RunSettings {
  /** Branch of the thread. Default: the head branch. */
  readonly branch?: string;
}

/** Options of both `run` and `resume`, without the branch, whose type depends on the graph. */
export interface RunSettings extends ModelsOption {
  /** Store of the thread. Without a store the run is in memory only. */
  readonly store?: Store;
  /** Source of the secrets that tools inject. */
  readonly secrets?: SecretSource;
  /**
   * Carries the text and the progress of the run to readers of the thread, also in other processes. Default: the
   * relay of the store in this process.
   */
  readonly relay?: Relay;
  /** Cancels the run when it fires. */
  readonly signal?: AbortSignal;
  /** Maximum number of supersteps of a run, over all its resumes. Default 1,000. */
  readonly maxSteps?: number;
  /**
   * Enables partial results and progress text of tools. Default true; when false, `update` is undefined and
   * `progress` does nothing.
   */
  readonly toolUpdates?: boolean;
  /** Maximum number of concurrent tasks of a superstep. Default: no limit. */
  readonly maxConcurrency?: number;
  /**
   * Effect of a task failure on sibling tasks: `finish` (default) lets them finish and saves their results, `abort`
   * fires their signals. Tool nodes always finish.
   */
  readonly onTaskFailure?: "finish" | "abort";
  /**
   * Handling of a `once` effect that has happened, or may have happened, on another branch of the thread. Default
   * `ask`.
   */
  readonly onPriorEffect?: OnPriorEffect;
  /** Clock, random source, schedule and log. Default: the system world. */
  readonly world?: World;
  /**
   * Receives the inspection events of the run's machines in XState's format: a function, or the `inspect` of a
   * standard inspector.
   */
  readonly inspect?: Inspector;
  /** Encodes values to stored text and decodes them. Default: plain data and built-in types. */
  readonly codec?: Codec;
  /** Migrations of threads that older versions of the graph have written. */
  readonly migrations?: readonly Migration[];
  /**
   * Older versions of the graph. A run written by one of them and incompatible with the current version continues
   * under the older version.
   */
  readonly older?: readonly Graph[];
}

/**
 * Handling of a `once` effect that another branch already ran. `ask`: raises an interrupt, whose answer says whether
 * the effect counts on this branch; a `step` in the body of a `once` node fails with `effect_in_doubt`. `reuse`: uses
 * the recorded outcome. `repeat`: runs the effect again.
 */
export type OnPriorEffect = "ask" | "reuse" | "repeat";

/** Breakpoints for debugging. A resume continues with the superstep at which the run paused. */
export interface BreakpointOption<Nodes extends string> {
  /**
   * Nodes at which the run pauses. They are saved with the run: a resume keeps them without the option, in any process,
   * until the run ends. `{}` removes them.
   */
  readonly breakpoints?: {
    /** Pauses before a superstep that runs one of these nodes. */
    readonly before?: readonly Nodes[];
    /** Pauses after the result of one of these nodes is committed, unless the run ends with it. */
    readonly after?: readonly Nodes[];
  };
}

declare const branchNodes: unique symbol;

/**
 * Name of a branch of a graph with these nodes. Any string is a name. The result of `fork` is a branch of its graph, and
 * of the graphs that contain this graph.
 */
export type BranchName<Nodes extends string = string> = string & { readonly [branchNodes]?: Nodes };

interface BranchOption<Branch extends string> {
  /** Branch of the thread. Default: the head branch. */
  readonly branch?: Branch;
}

/** Branches that a graph accepts: any branch when a tool may run an inner graph. */
type AcceptedBranch<Types extends GraphTypes> = [Types["tools"]] extends [never]
  ? BranchName<Types["nodes"] | Types["innerNodes"]>
  : string;

/** Context of a call: required if a value has no default. */
type ContextOption<Types extends GraphTypes> =
  Record<never, never> extends Types["given"]
    ? { readonly context?: Types["given"] }
    : { readonly context: Types["given"] };
type InputOption<Types extends GraphTypes> =
  Record<never, never> extends Types["input"]
    ? { readonly input?: Types["input"] }
    : { readonly input: Types["input"] };

/**
 * Options of the calls of a graph. Properties, so that compiler messages show the required options first, instead of the
 * name of a type.
 */
export interface GraphCallOptions<Types extends GraphTypes> {
  readonly run: ContextOption<Types> &
    InputOption<Types> &
    RunSettings &
    BranchOption<AcceptedBranch<Types>> &
    BreakpointOption<Types["nodes"]> &
    StartOptions & { readonly thread?: string };
  readonly resume: ContextOption<Types> &
    RunSettings &
    BranchOption<AcceptedBranch<Types>> &
    BreakpointOption<Types["nodes"]> &
    AnsweringOptions & {
      /** Answers by interrupt key or id; an interrupt of an inner graph has the key `node.key`. */
      readonly answers?: Answers<Types["interrupts"] & Types["innerInterrupts"]>;
    };
  readonly submitAnswers: ContextOption<Types> &
    BranchOption<AcceptedBranch<Types>> &
    Pick<RunSettings, "world" | "codec" | "migrations" | "older"> &
    AnsweringOptions & {
      /** Answers by interrupt key or id; an interrupt of an inner graph has the key `node.key`. */
      readonly answers: Answers<Types["interrupts"] & Types["innerInterrupts"]>;
    };
  readonly submit: InputOption<Types> & QueueOptions & { readonly store: Store };
}

/** Thread of answers, their author and their key. */
interface AnsweringOptions {
  readonly thread: string;
  readonly store: Store;
  /** Author of the answers: stored with them, and reported to later answers of the same interrupt. */
  readonly by?: string;
  /**
   * Idempotency key of the answers, unique in the thread. A second call with the same key and the same answers
   * continues the run after a crash, and otherwise returns its outcome. A durable machine takes a single event or one
   * answer under a key, which is then a valid id: the event is taken once until the run has ended.
   */
  readonly key?: string;
}

/** Options of a queued run, without its input. */
interface QueueOptions
  extends Pick<StartOptions, "metadata" | "tenant" | "owner">,
    Pick<RunSettings, "world" | "codec"> {
  /** Id of the thread; a missing thread is created. Default: a new thread. */
  readonly thread?: string;
  /**
   * Idempotency key, unique in the thread; requires `thread`. A second call with the same graph, input and metadata
   * returns the run of the first; another one is refused with `key_reused`.
   */
  readonly key?: string;
  /**
   * Handling of a busy thread, as of `run`. Default `enqueue`: the run starts when the runs before it are done or
   * cancelled. `reject` refuses the run with `thread_busy` while the thread has an unfinished or a queued run.
   */
  readonly onBusy?: OnBusy;
  /**
   * Earliest start, as a date or in milliseconds since the epoch, by the clock of the store; a past time starts the run
   * at once. The run waits outside of the queue: other runs of the thread start before. `onBusy` applies when it enters
   * the queue; with `reject` it is then cancelled on a busy thread. Not with `debounce`.
   */
  readonly at?: Date | number;
  /**
   * Starts the run `ms` milliseconds after the last call with this key: a call replaces the input, the metadata, the
   * owner and the idempotency key of the run that an earlier call queued, while that run has not started, and moves
   * its start. The key is unique for the graph and the tenant, and with `thread` in that thread.
   */
  readonly debounce?: { readonly key: string; readonly ms: number };
  /**
   * Priority among the queued runs of all threads, an integer: engines start runs of a higher priority first. Inputs
   * of a thread keep their order. Default 0.
   */
  readonly priority?: number;
}

/** Options of `run`. Input and context are required when the graph requires them. */
export type RunOptions<Types extends GraphTypes> = GraphCallOptions<Types>["run"];

/** Options of `submit`. Input is required when the graph requires it. */
export type SubmitOptions<Types extends GraphTypes> = GraphCallOptions<Types>["submit"];

/** Options of `submitAnswers`. Context is required when the graph requires it. */
export type SubmitAnswersOptions<Types extends GraphTypes> = GraphCallOptions<Types>["submitAnswers"];

/** Handling of a busy thread, and identification of the run. */
export interface StartOptions {
  /**
   * Handling of a new input when the thread has an unfinished run: running, waiting, paused, failed or crashed.
   * `reject` (default) refuses the input with `thread_busy`; `enqueue` queues the input behind that run; `cancel`
   * ends that run at once: its signals fire, finished work is kept, open tool calls are answered as cancelled and
   * open interrupts are declined; `rollback` ends that run and reverts its state changes, but not its external
   * effects. A user-written machine supports only the first two.
   */
  readonly onBusy?: OnBusy;
  /**
   * Idempotency key, unique in the thread. A second call with the same key does not start another run, and returns
   * the outcome of the first.
   */
  readonly key?: string;
  /**
   * Handling of a known key with another graph, input or metadata: `join` (default) returns the outcome of the run that
   * has the key, `refuse` rejects with `key_reused`. The input then needs the same message ids in each call.
   */
  readonly onKeyReused?: OnKeyReused;
  /**
   * Plain data that a repeated call must equal, in place of graph, input and metadata: for an input that differs in each
   * call. Only its hash is saved.
   */
  readonly keyBody?: Json;
  /** Plain data for filtering lists of runs. */
  readonly metadata?: JsonObject;
  /**
   * Tenant of the thread, 1 to 256 characters, saved with a thread that this run creates and with the run. A thread of
   * another tenant, or without a tenant, is refused with `invalid_option`. Default: the tenant of the thread.
   */
  readonly tenant?: string;
  /** Id of the user who starts the run, 1 to 256 characters: owner of the run, and of a thread that this run creates. */
  readonly owner?: string;
  /**
   * Ids of messages to remove from the channel `messages` before the input is added. An input itself cannot remove
   * messages, since it may come from a client. A removal that separates a tool call from its answer is refused with
   * `invalid_input`.
   */
  readonly removeMessages?: readonly string[];
}

/** Handling of a known idempotency key with another graph, input or metadata. */
export type OnKeyReused = "join" | "refuse";

/** Handling of a new input on a thread with an unfinished run. */
export type OnBusy = "reject" | "enqueue" | StopKind;

/** Answers by interrupt key or id. */
export type Answers<Interrupts extends InterruptShape> = string extends keyof Interrupts
  ? { readonly [id: string]: unknown }
  : {
      readonly [Key in keyof Interrupts]?: AnswerInput<Interrupts[Key]>;
    } & EngineAnswers<keyof Interrupts> & {
        readonly [id: `${string}:${string}`]: unknown;
        /** Interrupts of the engine about tool calls and nodes of an inner graph. */
        readonly [key: `${string}.approve` | `${string}.${typeof inDoubtKey}`]: unknown;
      };

/** Answers to interrupts that the engine raises itself and no graph declares. */
type EngineAnswers<Declared> = Omit<
  { readonly [inDoubtKey]?: InDoubtAnswer | NodeInDoubtAnswer | StepInDoubtAnswer },
  Declared & string
>;

/** Options of `resume`. */
export type ResumeOptions<Types extends GraphTypes> = GraphCallOptions<Types>["resume"];

/**
 * Open interrupt of a graph: each declared key with its payload, also of inner graphs as `node.key`. A graph whose tools
 * are not known may raise interrupts with other keys: its payloads are unknown.
 */
export type OpenInterruptOf<Types extends GraphTypes> = string extends Types["tools"] | keyof Types["interrupts"]
  ? OpenInterrupt
  :
      | {
          readonly [Key in keyof DeclaredInterrupts<Types> & string]: OpenInterrupt<
            Key,
            ShownPayload<DeclaredInterrupts<Types>[Key]>
          >;
        }[keyof DeclaredInterrupts<Types> & string]
      | OpenInterrupt<Exclude<EngineKey<Types["tools"]>, keyof DeclaredInterrupts<Types>>>;

type DeclaredInterrupts<Types extends GraphTypes> = Types["interrupts"] & Types["innerInterrupts"];

/** Keys of interrupts that the engine raises itself: approvals, effects in doubt, and calls of client tools. */
type EngineKey<Tools extends string> =
  | "approve"
  | typeof inDoubtKey
  | Tools
  | `${string}.approve`
  | `${string}.${typeof inDoubtKey}`
  | `${string}.${Tools}`;

/**
 * Event, or answer about a promise in doubt, that `resume` has stored for a durable machine. It is durable, and another
 * run or a later resume processes it.
 *
 * @example
 * ```ts
 * const sent = await resume(order, { store, thread: "order-9", answers: { CANCEL: {} } }).result;
 * if (sent.status === "delivered") console.log(sent.delivered.map(({ key }) => key));
 * ```
 */
export interface DeliveredEvent {
  /** Id of the inbox message. */
  readonly id: string;
  /** Event type, or `in_doubt`. */
  readonly key: string;
}

/** Fields common to all results of a run. */
export interface RunResultBase<State> {
  readonly run: string;
  readonly thread: string;
  readonly branch: string;
  readonly state: State;
  /** Supersteps that this process ran. */
  readonly steps: number;
  /** Bytes of deltas that this process saved. */
  readonly bytes: number;
  /** Events of this `resume` that are stored and wait for their turn; only for durable machines. */
  readonly delivered?: readonly DeliveredEvent[];
}

/** Result of a run; `queued`: the run has not started and waits behind another run. A failed run rejects instead. */
export type RunResult<State, Output = unknown, Interrupt = OpenInterrupt> =
  | ({ readonly status: "done"; readonly output: Output } & RunResultBase<State>)
  | ({
      readonly status: "waiting";
      readonly interrupts: readonly Interrupt[];
    } & RunResultBase<State>)
  | ({ readonly status: "paused"; readonly cause: ErrorRecord } & RunResultBase<State>)
  | ({ readonly status: "cancelled"; readonly reason: string } & RunResultBase<State>)
  /**
   * Only with `onBusy`: the input is stored, and this process does not run it now. The run starts when the run before
   * it is done or cancelled: in the process that ends that run, or in an engine. `state` is the current state of the
   * thread.
   */
  | ({ readonly status: "queued" } & RunResultBase<State>)
  /**
   * Only from `resume` with answers for a durable machine at work, in this process or another: the events are stored,
   * and the run that is at work processes them. `state` is the newest saved state.
   */
  | ({ readonly status: "delivered"; readonly delivered: readonly DeliveredEvent[] } & Omit<
      RunResultBase<State>,
      "delivered"
    >);

/** Options of `events`. */
export interface EventsOptions {
  /** Sequence number of the last durable event already seen; 0 for all. Requires a store. */
  readonly after?: number;
  /** Views of the events to read. Default: all events. */
  readonly views?: readonly EventView[];
  /**
   * After the last event of a failed run, the loop throws the error of the run. False: the loop ends, and only
   * `result` rejects. Default true.
   */
  readonly throwOnFailure?: boolean;
  /**
   * Handling of events that wait for a slow loop. `merge` (default): from 1,000 waiting events on, deltas of one
   * message are joined, and only the newest update and the newest line of progress of a call or node stay, with the
   * count of the others in `dropped`; from 10,000 waiting events on, events that are not stored are dropped, and
   * `events.dropped` has their count. `keep`: no event is merged or dropped, and memory grows with the backlog.
   */
  readonly overflow?: EventOverflow;
}

/** Handle of an active run of a graph with these types. */
export type RunOf<Types extends GraphTypes> = RunHandle<Types["result"], Types["output"], OpenInterruptOf<Types>>;

/** Handle of an active run. */
export interface RunHandle<State, Output = unknown, Interrupt = OpenInterrupt> {
  /**
   * Id of this call, known at once: the id of the run that it starts. A `resume`, and a `run` whose key exists, starts
   * no run: use {@link run}.
   */
  readonly id: string;
  /**
   * Id of the run that this handle drives, as in the store and in the result: the run that a `resume` continues, and
   * the existing run of a key. Known before the first node runs; for a queued input when it is in the queue. Rejects
   * with the error of `result` when that comes first, and needs no handler.
   */
  readonly run: Promise<string>;
  readonly thread: string;
  /**
   * Result of the run; rejects with the run's error. The rejection needs no handler when a reader of the events
   * receives the failure: as the error of its loop, or as the event `run.failed`.
   */
  readonly result: Promise<RunResult<State, Output, Interrupt>>;
  /**
   * Streams all events from now on, or the events of some views; with `after` also the durable events since that
   * number, without gaps and duplicates. Leaving the loop ends the subscription, not the run. After the last event of
   * a failed run, the loop throws the error of the run, unless `throwOnFailure` is false.
   */
  events(options?: EventsOptions): AsyncIterableIterator<RunEvent>;
  /** Streams the state after each superstep, without private channels. Throws the error of a failed run. */
  values(): AsyncIterableIterator<State>;
  /**
   * Streams the text of models as it arrives, without the text of agents that run as tools. When an answer breaks off
   * and is requested again, or a hook replaces it, the stream contains a notice, or the text of `formatRetracted`:
   * two answers to one request never follow each other without a notice. Throws the error of a failed run.
   */
  text(options?: TextOptions): AsyncIterableIterator<string>;
  /** Calls `listener` with each event until the returned function is called. */
  on(listener: (event: RunEvent) => void): () => void;
  /** Cancels the run: signals fire, no further effect starts, finished work is saved. */
  cancel(reason?: string): void;
  /**
   * Pauses the run at the end of the superstep, also of an inner graph: the status is `paused`, and a resume
   * continues. Throws `missing_store` without a store.
   */
  drain(reason?: string): void;
  /**
   * Sends a message to the active run: a text, or messages with the role user or system. The message is appended to
   * the channel `messages` after the results of the running tool calls, before the next model request; tool calls
   * that have not started are skipped, unless their tool node or tool says otherwise. A message that no boundary of
   * the run delivers waits for the next run of the thread. Resolves when the message is in the store, so that it
   * outlives the process. Rejects with `invalid_input` for other messages, `invalid_option` for a graph without the
   * channel, `missing_store` when a run without a store has finished.
   */
  steer(input: InboxInput): Promise<void>;
  /** Like {@link steer}, but delivered only when the run would end otherwise: the run continues instead. */
  followUp(input: InboxInput): Promise<void>;
}

/** Nodes with breakpoints. */
export interface Breakpoints {
  readonly before: ReadonlySet<string>;
  readonly after: ReadonlySet<string>;
}
