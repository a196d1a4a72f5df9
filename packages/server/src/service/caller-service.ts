/**
 * Acts of a caller: all that protocols do with threads, runs and graphs. Every id is the id that the caller knows; the
 * service adds the tenant, asks for the right, and hides graphs that are not exposed. What belongs to another tenant
 * does not exist here.
 */
import type {
  EventView,
  Json,
  JsonObject,
  Message,
  OnBusy,
  OpenInterrupt,
  RunEvent,
  RunStatus,
} from "@statewright/core";
import type { ClosedInterrupt } from "@statewright/core/inspect";

/** Page of a list. */
export interface Page<Item> {
  readonly data: readonly Item[];
  /** Cursor of the next page; absent on the last page. */
  readonly next?: string | undefined;
}

export interface PageOptions {
  /** Cursor of the previous page: its `next`. Default: the first page. */
  readonly before?: string | undefined;
  /** 1 to 200. Default 50. */
  readonly limit?: number | undefined;
}

export interface ThreadView {
  readonly id: string;
  readonly graph?: string | undefined;
  /** Status of the newest run; absent before the first run. */
  readonly status?: RunStatus | undefined;
  readonly title?: string | undefined;
  readonly metadata: JsonObject;
  readonly branch: string;
  readonly owner?: string | undefined;
  /** Milliseconds since the epoch, as all times of the service. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface RunView {
  readonly id: string;
  readonly thread: string;
  readonly branch: string;
  readonly graph: string;
  readonly status: RunStatus;
  readonly attempt: number;
  readonly metadata: JsonObject;
  readonly owner?: string | undefined;
  readonly createdAt: number;
  readonly endedAt?: number | undefined;
  /** Code and title of the failure of a failed or parked run. */
  readonly error?: { readonly code: string; readonly title: string } | undefined;
}

/** Run that a call has started, continued, or found by its key. */
export interface StartedRun {
  readonly run: RunView;
  /** False for a run that existed under the key. */
  readonly isNew: boolean;
  /** Number of the newest durable event before the run: the stream of the run begins after it. */
  readonly after: number;
}

export interface StateView {
  readonly thread: string;
  readonly graph: string;
  readonly checkpoint: number;
  readonly parent?: number | undefined;
  readonly branch: string;
  readonly step: number;
  readonly source: string;
  /** Nodes that run next; empty at the end. */
  readonly next: readonly string[];
  /** State without private channels. */
  readonly values: JsonObject;
  readonly interrupts: readonly OpenInterrupt[];
  readonly answered: readonly ClosedInterrupt[];
  readonly status?: RunStatus | undefined;
  readonly run?: string | undefined;
  readonly at: number;
}

export interface ThreadQuery extends PageOptions {
  readonly graph?: string | undefined;
  readonly status?: RunStatus | readonly RunStatus[] | undefined;
  readonly metadata?: Readonly<Record<string, string | number | boolean | null>> | undefined;
  readonly search?: string | undefined;
}

export interface StartRequest {
  readonly graph: string;
  readonly input?: unknown;
  readonly branch?: string | undefined;
  /** Idempotency key in the thread. */
  readonly key?: string | undefined;
  readonly onBusy?: OnBusy | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly breakpoints?:
    | { readonly before?: readonly string[] | undefined; readonly after?: readonly string[] | undefined }
    | undefined;
  readonly removeMessages?: readonly string[] | undefined;
  /** What the client asks for, for `contextOf`. Nothing else reads it. */
  readonly asked?: Json | undefined;
}

export interface ContinueRequest {
  readonly branch?: string | undefined;
  readonly key?: string | undefined;
  readonly breakpoints?: StartRequest["breakpoints"];
  readonly asked?: Json | undefined;
}

export interface AnswerRequest extends ContinueRequest {
  /** Answers by the id of the interrupt. */
  readonly answers: Readonly<Record<string, unknown>>;
  /** Refuses the answers when the head of the branch is another checkpoint. */
  readonly ifCheckpoint?: number | undefined;
}

export interface CancelRequest {
  readonly run?: string | undefined;
  readonly branch?: string | undefined;
  readonly reason?: string | undefined;
}

export interface GraphView {
  readonly name: string;
  readonly version: number;
  readonly description?: string | undefined;
  /** Fingerprint of channels, nodes, edges and tools. */
  readonly shape: string;
}

export interface GraphDetails extends GraphView {
  readonly machine: Json;
  readonly mermaid: string;
  /** JSON Schemas; undefined where a schema has none. */
  readonly schemas: {
    readonly input: Json | undefined;
    readonly state: Json | undefined;
    readonly output: Json | undefined;
    /** By the key of the interrupt. */
    readonly answers: Readonly<Record<string, Json>>;
  };
  /** Channels that an input may set. */
  readonly inputChannels: readonly string[];
  readonly nodes: readonly string[];
}

/** Frame of the events of a thread: an event as the caller may see it, or the news that the thread was deleted. */
export type ThreadFrame = RunEvent | { readonly type: "thread.deleted" };

export interface EventRequest {
  /** Number of the last durable event that was read. Default 0. */
  readonly after?: number | undefined;
  readonly branch?: string | undefined;
  readonly views?: readonly EventView[] | undefined;
  /**
   * `never`: the stream stays open over runs. `idle`: it ends when no run is at work or queued. A run: it ends after the
   * last event of this run in its current attempt. Default `never`.
   */
  readonly end?: "never" | "idle" | { readonly run: string } | undefined;
  readonly signal: AbortSignal;
}

export interface WaitingView {
  readonly thread: string;
  readonly branch: string;
  readonly run: string;
  readonly graph: string;
  readonly raisedAt: number;
  readonly interrupt: OpenInterrupt;
}

/** Acts of one caller through one protocol. Methods throw `StatewrightError`, or a `RequestProblem`. */
export interface CallerService {
  /** Graphs that the caller may see through this protocol, by name. */
  listGraphs(): Promise<readonly GraphView[]>;
  /** Describes a graph. Throws `unknown_graph` (404) for a graph that is not exposed. */
  getGraph(name: string): Promise<GraphDetails>;

  /** Threads of the tenant, most recently changed first. */
  listThreads(query: ThreadQuery): Promise<Page<ThreadView>>;
  /** Number of threads of the tenant that match a query. */
  countThreads(query: Omit<ThreadQuery, "before" | "limit">): Promise<number>;
  /** Creates a thread, or returns the existing one with `ifExists: "keep"`. Throws `thread_exists`. */
  createThread(write: {
    readonly id?: string | undefined;
    readonly title?: string | undefined;
    readonly metadata?: JsonObject | undefined;
    readonly ifExists?: "throw" | "keep" | undefined;
  }): Promise<{ readonly thread: ThreadView; readonly isNew: boolean }>;
  /** Row of a thread. Throws `unknown_thread`. */
  getThread(thread: string): Promise<ThreadView>;
  /** Changes title and metadata, and returns the new row. Null removes a title or a metadata key. */
  updateThread(
    thread: string,
    patch: { readonly title?: string | null | undefined; readonly metadata?: JsonObject | undefined },
  ): Promise<ThreadView>;
  /** Deletes a thread with all its rows. Throws `thread_busy` while a run is at work. */
  deleteThread(thread: string): Promise<void>;
  /** Copies a resting thread with its whole history to a new thread of the tenant. Default of `to`: a new id. */
  copyThread(thread: string, to?: string): Promise<ThreadView>;
  /** Removes old checkpoints of the thread; returns their number. */
  pruneThread(thread: string, keep: { readonly latest: number }): Promise<number>;

  /** Starts a run, or queues it. Resolves when it is saved. Creates a missing thread. */
  startRun(thread: string, request: StartRequest): Promise<StartedRun>;
  /** Answers interrupts and continues the run. Resolves when the answers are saved. */
  answer(thread: string, request: AnswerRequest): Promise<StartedRun>;
  /** Continues a paused, failed or crashed run. */
  resumeRun(thread: string, request: ContinueRequest): Promise<StartedRun>;
  /** Cancels the run at work, or the named run. Resolves when the request is saved. */
  cancelRun(thread: string, request: CancelRequest): Promise<RunView>;
  /** Pauses the run at work at the end of its superstep, or the named run. Resolves when the request is saved. */
  pauseRun(thread: string, request: CancelRequest): Promise<RunView>;
  /**
   * Sends messages to the run at work, or to the next run of the thread. Resolves when they are saved; a known `id`
   * is saved once.
   */
  sendMessage(
    thread: string,
    message: {
      readonly id?: string | undefined;
      readonly kind: "steer" | "followUp";
      readonly messages: readonly Message[];
      readonly branch?: string | undefined;
    },
  ): Promise<void>;
  /** Runs of a thread, newest first. */
  listRuns(
    thread: string,
    query: PageOptions & { readonly status?: RunStatus | readonly RunStatus[] | undefined },
  ): Promise<Page<RunView>>;
  /** Row of a run. Throws `unknown_run` (404) for a run of another tenant as for a missing one. */
  getRun(run: string): Promise<RunView>;
  /**
   * Number of the event before the first event of a run: a stream from there has the whole run. Undefined for a run that
   * has not started, and for a start that was pruned. Throws `unknown_run`.
   */
  findRunStart(run: string): Promise<number | undefined>;
  /** Resolves when the run rests or has ended, or when the signal fires, with its row at that moment. */
  waitForRun(run: string, signal: AbortSignal): Promise<RunView>;

  /** State at a checkpoint. Default: the newest of the branch, default: the head branch. */
  getState(
    thread: string,
    place?: {
      readonly at?: number | undefined;
      readonly branch?: string | undefined;
      readonly nesting?: string | undefined;
    },
  ): Promise<StateView>;
  /** Checkpoints of a branch with their states, newest first. */
  listStates(thread: string, query: PageOptions & { readonly branch?: string | undefined }): Promise<Page<StateView>>;
  /** Branches of a thread, oldest first: `from` is the checkpoint of the fork, `head` the newest checkpoint. */
  listBranches(
    thread: string,
  ): Promise<
    readonly { readonly name: string; readonly from?: number | undefined; readonly head?: number | undefined }[]
  >;
  /** Creates a branch at a checkpoint, and returns its first state. `moveHead` makes it the head branch. */
  fork(
    thread: string,
    request: {
      readonly at: number;
      readonly name?: string | undefined;
      readonly changes?: JsonObject | undefined;
      readonly moveHead?: boolean | undefined;
    },
  ): Promise<{ readonly branch: string; readonly state: StateView }>;
  /** Writes channels of the state in a new checkpoint, as the node `as`, and returns the new state. */
  updateState(
    thread: string,
    request: {
      readonly changes: JsonObject;
      readonly as?: string | undefined;
      readonly branch?: string | undefined;
    },
  ): Promise<StateView>;
  /** Replaces a message of the user on a new branch and runs the graph from there. */
  editMessage(
    thread: string,
    request: {
      readonly message: Message;
      readonly branch?: string | undefined;
      readonly key?: string | undefined;
      readonly asked?: Json | undefined;
    },
  ): Promise<StartedRun>;

  /** Open interrupts of the threads of the tenant, newest first. */
  listInterrupts(
    query: PageOptions & { readonly thread?: string | undefined; readonly graph?: string | undefined },
  ): Promise<Page<WaitingView>>;

  /**
   * Events of a thread: the durable events above `after`, a `snapshot` of what is open, and new events as they come.
   * Refuses before the first frame: unknown thread, `after` above the newest number.
   */
  streamEvents(thread: string, request: EventRequest): Promise<AsyncIterable<ThreadFrame>>;
}
