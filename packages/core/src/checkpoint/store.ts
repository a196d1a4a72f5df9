/**
 * Store contract: the requirements for stores of threads. Every value arrives encoded; a store handles text only.
 *
 * A thread has a single writer at a time. A claim returns an epoch, and every commit carries the epoch: a commit with
 * an outdated epoch is refused completely with `fenced`.
 *
 * A thread has branches, and a branch has child namespaces: the rows of inner graphs. The name of a child namespace
 * is its parent namespace, a "/" and an id, to any depth: `main/2:0`, `main/2:0/research`, `main/2:0:1` for a tool
 * call. Checkpoint ids and sequence numbers count over all namespaces of a thread; each namespace has its own head,
 * journal and interrupts.
 */
import type { StatewrightError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { LongTermChange, LongTermRows } from "../long-term/rows.ts";
import type { ArtifactWrite, StoredArtifacts } from "../tool/artifacts/artifact.ts";
import type { ChannelRows } from "./channel-rows.ts";
import type { CheckpointRow, DeltaRow, Retention, RunRow, RunStatus, StopKind } from "./checkpoint.ts";
import type { ClaimableKind, ClaimablePage } from "./claimable.ts";
import type { ClaimedRows } from "./claimed-rows.ts";
import type { EventRow } from "./event.ts";
import type { GraphVersion, PrunedDelta, ThreadExport } from "./export/thread-export.ts";
import type { InboxMessage, InboxMessageWrite } from "./inbox-message.ts";
import type { EffectRow, InterruptRow, OpenInterruptRow } from "./journal.ts";
import type { OutboxWrite, StoreOutbox } from "./outbox.ts";
import type { ClaimMode, PreviousOwner } from "./previous-owner.ts";
import type {
  HintListener,
  InputCounts,
  RunRequest,
  RunRequestOutcome,
  RunRequestWrite,
  WatchOptions,
} from "./run-request.ts";
import type { ScheduleFilter, ScheduleRow } from "./schedule.ts";
import type { NamespaceSummary, SuperstepPage, TimelineEntry } from "./superstep.ts";
import type { TimerChange, TimerFilter, TimerKind, TimerRow } from "./timer.ts";
import type { VerifyReport } from "./verify-report.ts";

/** Request to claim a thread. A missing thread or branch is created. */
export interface ClaimRequest {
  readonly thread: string;
  /** Branch to run; default: the thread's head branch. */
  readonly branch?: string | undefined;
  readonly graph: string;
  readonly version: number;
  /** Fingerprint of channels, nodes, edges and tools. */
  readonly shape: string;
  /** Outline of the graph as JSON text, saved with the first claim of this graph version. */
  readonly outline?: string | undefined;
  readonly at: number;
  /** Random part of the idempotency keys of a thread that this claim creates. Default: none. */
  readonly keySalt?: string | undefined;
  /** Refuses a missing thread or branch instead of creating it. */
  readonly mustExist?: boolean;
  /**
   * Tenant of the run. A thread that this claim creates gets the tenant; a tenant other than that of an existing
   * thread is refused with `invalid_option`. Default: the tenant of the thread.
   */
  readonly tenant?: string | undefined;
  /** Owner of a thread that this claim creates. */
  readonly owner?: string | undefined;
  /**
   * Claim of a starting run whose first commit precedes all work. A store may defer the claim to that commit, in one
   * write, and refuse the commit with `fenced` if another owner has claimed the thread in between. Within the same
   * store the thread counts as claimed at once: queued runs and posted messages reach the run, and delete, fork and
   * import of the thread are refused.
   */
  readonly startsRun?: boolean | undefined;
  /**
   * `free` (default) refuses a thread of a live owner with `thread_busy`. `force` claims the thread also from a live
   * owner of another store object, without a wait: the next commit of that owner is refused with `fenced`. For an
   * orchestrator that has decided that this process works on the thread.
   */
  readonly claim?: ClaimMode | undefined;
  /**
   * Asks for the rows of the newest checkpoint with the claim, so that a continued run reads no table after it. A store
   * may leave them out: the run then reads them.
   */
  readonly loads?: boolean | undefined;
}

/** Claimed thread, with the inputs that wait for its owner. */
export interface Claim extends InputCounts {
  readonly epoch: number;
  /** Random part of the idempotency keys of the thread, from the call that created it; `""` for none. */
  readonly keySalt: string;
  /** Tenant of the thread, and of its runs. */
  readonly tenant?: string | undefined;
  readonly branch: string;
  /** Next free sequence number of durable events, and next free checkpoint id of the thread. */
  readonly nextSeq: number;
  readonly nextCheckpoint: number;
  /**
   * Writer of the branch's newest checkpoint: graph, version and shape of its claim; of this claim when there is no
   * checkpoint.
   */
  readonly writtenBy: GraphVersion;
  /** Newest checkpoint of the branch; undefined on a new thread. */
  readonly head: CheckpointRow | undefined;
  /** Newest run of the branch. */
  readonly run: RunRow | undefined;
  readonly previousOwner: PreviousOwner;
  /** Time of the claim by the clock of the store, in milliseconds since the epoch; absent in a store without a clock. */
  readonly at?: number | undefined;
  /** Rows of the newest checkpoint, for a claim with `loads`; undefined without a checkpoint. */
  readonly loaded?: ClaimedRows | undefined;
}

/** Graph of a process that claims runs: name, version, and the values that each claim of a thread saves. */
export interface ClaimingGraph extends Pick<ClaimRequest, "version" | "shape" | "outline"> {
  readonly name: string;
}

/** Request for claims of runs that a process can continue. */
export interface RunClaimRequest {
  /** Newest version of each graph of the process. Runs of other graphs and of newer versions are left out. */
  readonly graphs: readonly ClaimingGraph[];
  /** Kinds to claim, in this order. */
  readonly kinds: readonly ClaimableKind[];
  /** Maximum number of claims; each is of another thread. */
  readonly limit: number;
  readonly at: number;
  /** Leaves out runs that the process could not continue before. Synchronous, called inside the write. */
  readonly isSkipped?: ((run: Pick<RunRow, "thread" | "id">) => boolean) | undefined;
}

/** Claimed run: its row, with the effective status before the claim, and the claim of its thread. */
export interface ClaimedRun {
  readonly kind: ClaimableKind;
  readonly run: RunRow;
  readonly claim: Claim;
}

/** Request for claims of due timers. */
export interface TimerClaimRequest {
  /** Newest version of each graph of the process. Timers on threads of other graphs and newer versions are left out. */
  readonly graphs: readonly Pick<ClaimingGraph, "name" | "version">[];
  /** Kinds of timers. Default: all. */
  readonly kinds?: readonly TimerKind[] | undefined;
  /** Inclusive upper limit of the due times. */
  readonly dueBy: number;
  /** End of the claims, in milliseconds since the epoch: a timer that still exists then is due for every process. */
  readonly until: number;
  readonly limit: number;
  /** Cursor: the last timer of the previous page. */
  readonly after?: TimerRow | undefined;
}

/**
 * Checkpoint to write. The journal rows of the predecessor are folded: only `once` effects retain outcomes and task
 * rows. A checkpoint with the same step as its predecessor continues that step, and the journal is unchanged.
 */
export interface CheckpointWrite {
  readonly row: CheckpointRow;
  readonly deltas: readonly DeltaRow[];
}

/** Atomic write by the owner of a thread. */
export interface Commit {
  readonly thread: string;
  /**
   * Namespace to write: a branch or a child namespace. The first checkpoint of a child namespace creates the
   * namespace: empty without a parent checkpoint, otherwise continued from the parent checkpoint on any namespace,
   * like a fork.
   */
  readonly branch: string;
  readonly epoch: number;
  /** Last sequence number used by this commit. */
  readonly seq: number;
  /**
   * Sequence number before the first of this commit. The commit is refused with `store_failed` when the thread has
   * not reached that number because an earlier write failed.
   */
  readonly after?: number | undefined;
  /** Run row, only in commits to branches. The first commit that changes the status of a queued run starts the run. */
  readonly run?: RunRow | undefined;
  /** Inserts or replaces rows by step, task and key. */
  readonly effects?: readonly EffectRow[];
  /** Journal rows of existing parent namespaces, committed atomically with this commit. */
  readonly parentJournals?: readonly NamespaceJournal[] | undefined;
  readonly checkpoint?: CheckpointWrite | undefined;
  /** Inserts or replaces rows by id. */
  readonly interrupts?: readonly InterruptRow[];
  /** Durable events committed atomically, except checkpoints. */
  readonly events?: readonly EventRow[] | undefined;
  /** Timer changes of the namespace, in order. */
  readonly timers?: readonly TimerChange[] | undefined;
  /**
   * Ids of the inbox messages received by this commit; removed from the inbox in the same write. Requires a
   * checkpoint or a run row, whose run is the receiver.
   */
  readonly deliveredMessages?: readonly string[] | undefined;
  /**
   * Run rolled back by this commit: its received messages return to the inbox at their old positions. Received
   * messages of a run that ends otherwise are deleted.
   */
  readonly rolledBackRun?: string | undefined;
  /**
   * Ids of the requests handled by this commit. A commit that ends a run handles all requests of the run. A handled
   * request without a key is removed.
   */
  readonly handledRequests?: readonly string[] | undefined;
  /** Artifacts of the committed effects, stored atomically with the outcomes. */
  readonly artifacts?: readonly ArtifactWrite[] | undefined;
  /** Long-term changes applied atomically with this commit, in order. */
  readonly longTerm?: readonly LongTermChange[] | undefined;
  /** Messages for the consumers subscribed to their topics, written atomically with this commit. */
  readonly outbox?: readonly OutboxWrite[] | undefined;
  /** Releases the thread in the same write. */
  readonly release?: boolean;
}

/** Journal rows of a namespace. */
export interface NamespaceJournal {
  readonly namespace: string;
  /** Inserts or replaces rows by step, task and key. */
  readonly effects: readonly EffectRow[];
}

/** New branch that starts at a checkpoint of its thread, with a single checkpoint of its own. */
export interface BranchWrite {
  readonly thread: string;
  readonly branch: string;
  readonly from: number;
  readonly checkpoint: CheckpointWrite;
  /** Makes the new branch the thread's head branch, the default branch. */
  readonly head?: boolean;
  /** Answered interrupts of the step of `from`, copied to the new branch to avoid asking again. */
  readonly interrupts: readonly InterruptRow[];
  /**
   * Child namespaces of the new branch, each after its parent, each continued from a checkpoint with a single new
   * checkpoint.
   */
  readonly inner?: readonly {
    readonly namespace: string;
    readonly from: number;
    readonly checkpoint: CheckpointWrite;
  }[];
}

/** Thread to create before its first run. */
export interface ThreadWrite {
  readonly thread: string;
  readonly at: number;
  readonly title?: string | undefined;
  /** Plain data for filters of lists; keys with the value null are left out. */
  readonly metadata?: JsonObject | undefined;
  readonly tenant?: string | undefined;
  readonly owner?: string | undefined;
  /** Random part of the idempotency keys of the thread. Default: none. */
  readonly keySalt?: string | undefined;
  /** Handling of an existing thread: `throw` (default) refuses the write, `keep` returns the row unchanged. */
  readonly ifExists?: "throw" | "keep" | undefined;
}

/** Change of the title and the metadata of a thread. */
export interface ThreadPatch {
  readonly at: number;
  /** New title; null removes the title. */
  readonly title?: string | null | undefined;
  /** Keys to set; a key with the value null is removed. Other keys are kept. */
  readonly metadata?: JsonObject | undefined;
}

/** Thread that an enqueued run creates: the graph version of the run, and the values of a claim of a new thread. */
export type QueuedThread = Pick<ClaimRequest, "graph" | "version" | "shape" | "outline" | "at" | "keySalt">;

/** Run to enqueue on a branch. */
export interface QueueWrite {
  readonly thread: string;
  /**
   * Creates a missing thread in the same write, with the tenant and the owner of the run; its head branch is `branch`,
   * by default `main`. An existing thread is unchanged.
   */
  readonly creates?: QueuedThread | undefined;
  /**
   * Refuses the run with `thread_busy` while a live owner holds the thread, or the branch has an unfinished or a queued
   * run. A known idempotency key is returned first.
   */
  readonly mustBeIdle?: boolean | undefined;
  /** Default: the thread's head branch. */
  readonly branch?: string | undefined;
  /**
   * Run row with the status `queued` and an input. Without a tenant the run has the tenant of the thread. A run with
   * `startAt` is delayed: it does not enter the queue, and `mustBeIdle` and `stops` do not apply.
   */
  readonly run: Omit<RunRow, "thread" | "branch" | "stops">;
  /**
   * Debounce name of a delayed run. If a delayed run of any thread has the name, that run gets the input, the start
   * time, the key, the labels and the graph version of this run instead, and is returned; no thread is created.
   */
  readonly debounce?: string | undefined;
  /** Pre-emption of the newest run of the branch by this run. */
  readonly stops?: StopKind | undefined;
}

/** Write of a schedule, with the run of a slot in the same transaction. */
export interface ScheduleWrite {
  readonly row: Omit<ScheduleRow, "revision">;
  /** Revision of the row that this write replaces; 0 for a new row. */
  readonly revision: number;
  /** Run to enqueue. A duplicate key writes no second run, and `last` of the row then names the existing run. */
  readonly run?: QueueWrite | undefined;
}

/** Schedules of a store. */
export interface Schedules {
  /** Schedule by its id. */
  get(id: string): Promise<ScheduleRow | undefined>;
  /** Schedules that match a filter. A page by due time is an index look-up, independent of the number of schedules. */
  list(filter?: ScheduleFilter): Promise<readonly ScheduleRow[]>;
  /**
   * Writes a schedule and enqueues its run, both or neither. Returns undefined, without a write, when the row has
   * another revision: another process has changed, fired or removed the schedule. Throws the errors of
   * {@link Store.enqueue}.
   */
  put(write: ScheduleWrite): Promise<{ readonly row: ScheduleRow; readonly run?: RunRow | undefined } | undefined>;
  /** Removes a schedule; false when there is none. Runs that it queued stay. */
  delete(id: string): Promise<boolean>;
}

/** Pruning request. Checkpoints needed by an active writer, a fork or an open interrupt are retained. */
export interface PruneWrite extends Retention {
  readonly thread: string;
  /**
   * Maximum number of checkpoints to remove; default: no limit. Order: innermost graphs first, at equal depth the
   * namespace with the lowest checkpoint id, in a namespace oldest first.
   */
  readonly limit?: number | undefined;
  /** Merges the removed changes of a channel, oldest first, into fewer changes with the same result. */
  readonly merge: (rows: readonly PrunedDelta[]) => readonly PrunedDelta[];
}

/** Metadata filter: every key must equal the given value. */
export type MetadataFilter = Readonly<Record<string, string | number | boolean | null>>;

/** Filter of runs. Times are in milliseconds since the epoch, `since` inclusive and `until` exclusive. */
export interface RunFilter {
  readonly thread?: string;
  /** Branch of the runs; default: all branches. */
  readonly branch?: string;
  /** A status, or a list of alternatives. */
  readonly status?: RunStatus | readonly RunStatus[];
  readonly graph?: string;
  /** Idempotency key of a run. */
  readonly key?: string;
  readonly tenant?: string;
  readonly owner?: string;
  readonly metadata?: MetadataFilter;
  /** Limits of the start time. */
  readonly since?: number;
  readonly until?: number;
  /** `exclude`: without delayed runs, which have the status `queued` and are not in a queue. Default `include`. */
  readonly delayed?: "include" | "exclude";
  /** Cursor: the last row of the previous page, which may be deleted meanwhile. */
  readonly before?: Pick<ListedRunRow, "position"> | undefined;
  /** Default `newest`: newest start or queueing first. `oldest` needs `thread`, and excludes `before`. */
  readonly order?: "newest" | "oldest";
  readonly limit?: number;
}

/** Run in a list. */
export interface ListedRunRow extends RunRow {
  /** Place in the lists of all runs of the store: later starts and inputs have higher numbers. */
  readonly position: number;
}

/** Filter of counted runs. */
export type RunCountFilter = Omit<RunFilter, "status" | "delayed" | "before" | "order" | "limit">;

/** Filter of threads. */
export interface ThreadFilter {
  /** Status of the newest run of a thread: a single status, or a list of alternatives. */
  readonly status?: RunStatus | readonly RunStatus[];
  readonly graph?: string;
  readonly tenant?: string;
  readonly owner?: string;
  /** Metadata of the thread itself. */
  readonly metadata?: MetadataFilter;
  /** Metadata of the newest run of a thread. */
  readonly runMetadata?: MetadataFilter;
  /**
   * Text of a search field: threads whose id begins with the text, whose graph has this name, or with a metadata value
   * that equals the text.
   */
  readonly search?: string;
  /** Limits of the time of the last change. */
  readonly since?: number;
  readonly until?: number;
  /** Cursor: the last row of the previous page. */
  readonly before?: Pick<ThreadRow, "id" | "updatedAt"> | undefined;
  readonly limit?: number;
}

/** Filter of counted threads. */
export type ThreadCountFilter = Omit<ThreadFilter, "status" | "before" | "limit">;

/** Number of rows by status; every status has a number. */
export type StatusCounts = Readonly<Record<RunStatus, number>>;

/** Number of threads. */
export interface ThreadCounts {
  readonly total: number;
  /** Threads by the status of their newest run, without queued runs. */
  readonly byStatus: StatusCounts;
  /** Threads without a started run. */
  readonly withoutRun: number;
}

/** Number of runs. */
export interface RunCounts {
  readonly total: number;
  readonly byStatus: StatusCounts;
}

/** Filter of open interrupts. */
export interface OpenInterruptFilter {
  readonly thread?: string;
  readonly graph?: string;
  readonly key?: string;
  /** Tenant of the waiting run. */
  readonly tenant?: string;
  /** Owner of the waiting run. */
  readonly owner?: string;
  /** Metadata of the waiting run. */
  readonly metadata?: MetadataFilter;
  /** Excludes interrupts expired at this time. */
  readonly at?: number;
  /** Cursor: the last row of the previous page. */
  readonly before?: Pick<OpenInterruptRow, "position"> | undefined;
  readonly limit?: number;
}

/** Thread in lists. */
export interface ThreadRow {
  readonly id: string;
  /** Graph and version of the last writer; absent before the first claim of a created thread. */
  readonly graph?: string | undefined;
  readonly version?: number | undefined;
  readonly createdAt: number;
  /** Time of the last write of a checkpoint, run or interrupt, or of the last change of title and metadata. */
  readonly updatedAt: number;
  readonly headBranch: string;
  readonly status: RunStatus | undefined;
  readonly title?: string | undefined;
  /** Plain data of the thread, for filters of lists. */
  readonly metadata?: JsonObject | undefined;
  /** Tenant of the thread and of all its runs; never changes. */
  readonly tenant?: string | undefined;
  /** Id of the user who owns the thread; never changes. Runs of the thread may have other owners. */
  readonly owner?: string | undefined;
}

/** Checkpoint with its deltas. */
export interface CheckpointWithDeltas extends CheckpointRow {
  readonly deltas: readonly DeltaRow[];
}

/** Stored durable event: a checkpoint with its deltas, or an event row. */
export type StoredEvent = { readonly checkpoint: CheckpointWithDeltas } | { readonly durableEvent: EventRow };

/** Reads of a store. */
export type StoreReads = Pick<
  Store,
  | "name"
  | "thread"
  | "threads"
  | "countThreads"
  | "branches"
  | "run"
  | "runs"
  | "countRuns"
  | "checkpoint"
  | "writtenBy"
  | "outline"
  | "head"
  | "history"
  | "state"
  | "effects"
  | "interrupts"
  | "openInterrupts"
  | "inbox"
  | "inboxMessage"
  | "requests"
  | "timers"
  | "events"
  | "namespaces"
  | "supersteps"
>;

/**
 * Owner of the work on the threads of a store: `store` for engines and callers that claim threads by the liveness of
 * their owners; `orchestrator` for a system that delivers all work, a single delivery of a thread at a time.
 */
export type Ownership = "store" | "orchestrator";

/** Store of threads. Reads are open to every caller, writes to the owner of the thread. */
export interface Store {
  readonly name: string;
  /** True when no other process can write to this store: an active run need not poll for external input. */
  readonly local?: boolean | undefined;
  /**
   * Owner of the work on the threads, recorded by the first process that opens the store. An engine refuses a store of
   * an orchestrator. Default: `store`.
   */
  readonly ownership?: Ownership | undefined;
  /**
   * Returns the time of the store in milliseconds since the epoch. Timers and expiries are armed and judged by this
   * clock, so that processes with different clocks agree. A store with a clock sets `at` of each claim. In a store
   * without a clock, due times follow the clock of each process.
   */
  now?(): Promise<number>;
  /** Rows independent of threads. Export, pruning and deletion of threads do not change these rows. */
  readonly longTerm: LongTermRows;
  /**
   * Creates a thread without a graph or a run, and with its branch `main`; returns its row. The first claim sets the
   * graph. Throws `thread_exists`; with `ifExists: "keep"` returns the row of an existing thread unchanged, and throws
   * `invalid_option` when that thread has another tenant.
   */
  createThread(write: ThreadWrite): Promise<ThreadRow>;
  /**
   * Changes the title and the metadata of a thread and returns its new row; does not require ownership. Throws
   * `unknown_thread`.
   */
  updateThread(thread: string, patch: ThreadPatch): Promise<ThreadRow>;
  /**
   * Claims a thread as its only writer. Throws `thread_busy` while a live owner holds the thread, including this
   * store; a forced claim only while this store holds the thread. With `mustExist` throws `unknown_thread` or
   * `unknown_branch`.
   */
  claim(request: ClaimRequest): Promise<Claim>;
  /**
   * Claims runs that the graphs of the request can continue, each with its thread, in a single write; no two calls
   * return the same run. Queued runs that can start are taken by priority, highest first; within a priority round robin
   * over the tenants that have such runs, where runs without a tenant are a single tenant; of a tenant in the order of
   * queueing. The position in the rotation is kept in the store. The cost depends on the number of claims, not on the
   * length of the queue. Runs of the other kinds are taken in the order of their start. A crash between the claim and
   * the first commit leaves the run claimable. A process lists `claimable` in a store without this method.
   */
  claimRuns?(request: RunClaimRequest): Promise<readonly ClaimedRun[]>;
  /**
   * Enqueues an atomic write. `onCommitted` is called once, synchronously after the write is durable or has failed,
   * in call order, never inside this call; `counts` are the inputs that wait for the owner of the thread at that moment.
   * Refused with `fenced` after the thread was released or claimed by another owner; with `unknown_branch` for a
   * write without a checkpoint to a missing namespace and for a first checkpoint without its parent namespace; with
   * `invalid_id` for a name outside the grammar; with `run_exists` for a new run with a duplicate key and for a
   * queued run that was cancelled.
   */
  commit(commit: Commit, onCommitted: (failure?: StatewrightError, counts?: InputCounts) => void): void;
  /**
   * Enqueues a run on its branch, in call order; does not require ownership of the thread. Returns the saved row: for
   * a duplicate key the existing run, without a write. A delayed run enters the queue by {@link Store.enqueueDue}. Throws `unknown_thread`, `unknown_branch`, `thread_busy`, and
   * `run_exists` for an id that a run of the thread has, or a queued run of any thread.
   */
  enqueue(write: QueueWrite): Promise<RunRow>;
  /**
   * Moves the delayed runs that are due at `at` into the queues of their threads, the earliest due first, and returns
   * their new rows. Each run moves once over all processes. Does not require ownership. With `onBusy` on a busy thread,
   * a run pre-empts the newest run of its branch, or is cancelled. Each call is an index look-up, independent of the
   * number of delayed runs that are not due.
   */
  enqueueDue(page: { readonly at: number; readonly limit: number }): Promise<readonly RunRow[]>;
  /** Schedules of runs; independent of threads: deletion and export of threads do not change them. */
  readonly schedules: Schedules;
  /**
   * Removes a run from the queue with the status `cancelled`, also a delayed run. Returns false when the run is not
   * queued. Does not require ownership.
   */
  dequeue(thread: string, run: string, ended: { readonly at: number; readonly reason: string }): Promise<boolean>;
  /**
   * Adds a message to the inbox of a branch, in call order; does not require ownership of the thread. Returns the
   * saved row: for the id of a waiting message, or of one that an unfinished run has received, the existing row,
   * without a write. Throws `unknown_thread`,
   * `unknown_branch`, `invalid_id`.
   */
  post(write: InboxMessageWrite): Promise<InboxMessage>;
  /**
   * Adds a request of a run, in call order; does not require ownership of the thread. The first request of a run
   * counts: a later one changes nothing, except a cancel after a pause. Removes a queued run from the queue at once
   * for a cancel. A run that ended needs no request, and a known key returns its outcome without a write. Throws
   * `unknown_thread`, `unknown_branch`, `unknown_run`, `invalid_id`.
   */
  request(write: RunRequestWrite): Promise<RunRequestOutcome>;
  /**
   * Creates a branch with its child namespaces and first checkpoints; the store assigns `id`, `seq` and `parent`.
   * Throws `unknown_thread`, `unknown_checkpoint`, `thread_exists` for an existing name, `invalid_id` for a namespace
   * outside the branch, `thread_busy` while a live owner holds the thread.
   */
  branch(write: BranchWrite): Promise<CheckpointRow>;
  /**
   * Calls the listener when a thread changes, until the returned function is called. Writes of this store are reported
   * after they are durable, never inside a call; writes of other processes later. A hint may be lost, repeated or
   * early: polling the rows is always correct. The listener must not throw. Absent in a store without hints.
   */
  watch?(listener: HintListener, options?: WatchOptions): () => void;
  /**
   * Calls `read` with reads that all see the store as of the same moment, also across `await`, and releases the moment
   * when `read` ends. Claims no thread and writes nothing; writers continue. The reads throw `store_closed` after
   * `read` has ended, and after the store was closed. A store without this method has no such moment: readers then see
   * each row as of its own read.
   */
  snapshot?<Value>(read: (reads: StoreReads) => Promise<Value>): Promise<Value>;
  // Missing rows read as `undefined` or an empty list; only `state` throws `unknown_checkpoint`. Reads of a branch
  // accept a child namespace; lists of threads, runs and branches exclude child namespaces.
  /** Row of a thread. */
  thread(thread: string): Promise<ThreadRow | undefined>;
  /** Threads, most recently changed first; `status` is the status of the newest run, ignoring queued runs. */
  threads(filter?: ThreadFilter): Promise<readonly ThreadRow[]>;
  /**
   * Branches, oldest first; `from` is the checkpoint that a fork started at, `head` the newest checkpoint of the
   * branch.
   */
  branches(
    thread: string,
  ): Promise<
    readonly { readonly name: string; readonly from: number | undefined; readonly head: number | undefined }[]
  >;
  /** Runs, newest start or queueing first, independent of the clock. */
  runs(filter?: RunFilter): Promise<readonly ListedRunRow[]>;
  /**
   * Run by its id, over all threads, or over those of a tenant and an owner. When copies of a thread repeat the id, the
   * run of these that the store has known longest.
   */
  run(id: string, of?: Pick<RunFilter, "tenant" | "owner">): Promise<RunRow | undefined>;
  /** Number of threads by the status of their newest run. */
  countThreads(filter?: ThreadCountFilter): Promise<ThreadCounts>;
  /** Number of runs by status. */
  countRuns(filter?: RunCountFilter): Promise<RunCounts>;
  /** Row of a checkpoint, on any branch of the thread. */
  checkpoint(thread: string, id: number): Promise<CheckpointRow | undefined>;
  /** Writer of a checkpoint: graph, version and shape of its claim. */
  writtenBy(thread: string, checkpoint: number): Promise<GraphVersion | undefined>;
  /** Outline of a graph version as JSON text; undefined for a version whose claims had none. */
  outline(version: GraphVersion): Promise<string | undefined>;
  /** Newest checkpoint of a branch (default: the head branch). */
  head(thread: string, branch?: string): Promise<CheckpointRow | undefined>;
  /** Page of a branch's checkpoints with deltas, through its ancestors, newest first. */
  history(
    thread: string,
    page: { readonly branch?: string | undefined; readonly before?: number | undefined; readonly limit: number },
  ): Promise<readonly CheckpointWithDeltas[]>;
  /** Rows of every channel's value at a checkpoint. */
  state(thread: string, checkpoint: number): Promise<readonly ChannelRows[]>;
  /** Journal rows of a step of a branch in the order of their first write; of all steps when `step` is absent. */
  effects(thread: string, branch: string, step?: number): Promise<readonly EffectRow[]>;
  /** Interrupts of a branch, answered and open, oldest first. */
  interrupts(thread: string, branch: string): Promise<readonly InterruptRow[]>;
  /**
   * Open interrupts over all threads, newest first, whatever the status of the run: an interrupt is open until the
   * answer or the expiry, until the superstep ends, the run is done or cancelled, or the run waits for other interrupts
   * only.
   */
  openInterrupts(filter?: OpenInterruptFilter): Promise<readonly OpenInterruptRow[]>;
  /** Claimable runs of a kind. Each page is an index look-up, independent of the size of the store. */
  claimable(page: ClaimablePage): Promise<readonly RunRow[]>;
  /** Waiting inbox messages of a branch in posting order. Read at every boundary of a run that accepts messages. */
  inbox(thread: string, branch: string): Promise<readonly InboxMessage[]>;
  /** Inbox message by its id: waiting, or received by a run that has not ended. */
  inboxMessage(thread: string, branch: string, id: string): Promise<InboxMessage | undefined>;
  /** Requests of a thread that are not handled, oldest first. */
  requests(thread: string): Promise<readonly RunRequest[]>;
  /**
   * Inputs that wait for the owners of these threads, in their order, in a single read; zeros for an unknown thread.
   */
  countInputs(threads: readonly string[]): Promise<readonly InputCounts[]>;
  /** Timers of all namespaces by due time, then by id. Without a thread each page is an index look-up. */
  timers(filter?: TimerFilter): Promise<readonly TimerRow[]>;
  /**
   * Claims due timers that no other living process has claimed, in the order of `timers`, and returns them with those
   * that this store has claimed before. A claim ends when the timer is dropped or armed again, at `until`, and with its
   * process. A claim only keeps other processes from the same work: it fences nothing. A process reads `timers` in a
   * store without this method.
   */
  claimTimers?(request: TimerClaimRequest): Promise<readonly TimerRow[]>;
  /**
   * Durable events of a thread with a sequence number above `after`, in order: checkpoints of all namespaces and
   * event rows. `from` is a checkpoint already read: only later checkpoints are searched.
   */
  events(
    thread: string,
    page: { readonly after: number; readonly from?: number | undefined; readonly limit: number },
  ): Promise<readonly StoredEvent[]>;
  /**
   * Lists branches or child namespaces of a thread with their newest checkpoints, in order of creation. Reads no
   * deltas, so that checkpoints are not verified.
   */
  namespaces(thread: string, kind: "branch" | "child"): Promise<readonly NamespaceSummary[]>;
  /**
   * Lists supersteps and durable events of a thread. Reads no text of deltas, outcomes and arguments, so that
   * checkpoints are not verified. A store without this method is read by `events` and `effects`, whole.
   */
  supersteps?(thread: string, page: SuperstepPage): Promise<readonly TimelineEntry[]>;
  /** Messages about saved events for receivers outside of the store; deleted with their thread. */
  readonly outbox: StoreOutbox;
  /** Artifacts of tool calls; deleted with their thread. */
  readonly artifacts: StoredArtifacts;
  /**
   * Deletes a thread with all its rows. Throws `unknown_thread`, and `thread_busy` while a live owner holds the
   * thread.
   */
  delete(thread: string): Promise<void>;
  /**
   * Exports a thread as a single consistent snapshot, also during writes. Does not require ownership. With `bodies:
   * "omit"` the bodies of artifacts may be absent: the caller reads them from `artifacts`. Throws `unknown_thread`.
   */
  exportThread(thread: string, options?: { readonly bodies?: "include" | "omit" }): Promise<ThreadExport>;
  /** Imports a thread from its export, without an owner. Throws `thread_exists`. */
  importThread(exported: ThreadExport): Promise<void>;
  /**
   * Removes old checkpoints and returns their number; does not require ownership, also runs during writes. Works in
   * several writes so that other writes can interleave: a crash leaves a consistent thread, and the next call
   * continues. Throws `unknown_thread`.
   */
  prune(write: PruneWrite): Promise<number>;
  /** Returns free space to the file system and erases the text of deleted rows. */
  vacuum(): Promise<void>;
  /**
   * Verifies every row of a thread, or of all threads: each checkpoint chain from its anchor on, and each checksum.
   * Absent in a store without checksums. Throws `unknown_thread`.
   */
  verify?(thread?: string): Promise<VerifyReport>;
  /**
   * Re-encrypts all values not encrypted with the newest key, of a thread or of all threads; returns the number of
   * rows. Absent in a store that cannot encrypt. Throws `invalid_option` without encryption, `missing_key`,
   * `unknown_thread`.
   */
  rotate?(thread?: string): Promise<number>;
  /**
   * Finishes the accepted writes, releases the threads of this store and frees its resources. Operations started
   * afterwards reject with `store_closed`; a second call has no effect.
   */
  close(): Promise<void>;
}
