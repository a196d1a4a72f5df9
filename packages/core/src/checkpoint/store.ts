/**
 * The store contract: what a place that keeps threads must do. Every value arrives encoded; a store moves text.
 *
 * One writer owns a thread at a time. It claims the thread, gets an epoch, and every commit carries that epoch: the
 * commit of a writer whose epoch is no longer the newest is refused whole with `fenced`.
 *
 * A thread has branches, and a branch has child lines: the rows of inner graphs. A child line is named by its parent
 * line, a "/" and an id, to any depth: `main/2:0`, `main/2:0/research`, `main/2:0:1` of a tool's call. Checkpoint ids and sequence numbers count over
 * all lines of a thread; each line has its own head, journal and questions.
 */
import type { StatewrightError } from "../base/errors.ts";
import type { LongTermChange, LongTermRows } from "../long-term/rows.ts";
import type { ArtifactWrite, KeptArtifacts } from "../tool/artifacts/artifact.ts";
import type { CheckpointRow, DeltaRow, RunRow, RunStatus, StopKind } from "./checkpoint.ts";
import type { ClaimablePage } from "./claimable.ts";
import type { EventRow } from "./event.ts";
import type { CutDelta, ThreadImage, WrittenBy } from "./export/thread-export.ts";
import type { LetterRow, LetterWrite } from "./inbox-message.ts";
import type { EffectRow, InterruptRow, QuestionRow } from "./journal.ts";
import type { Retention } from "./retention.ts";
import type { TimerChange, TimerRow } from "./timer.ts";

/** What a writer says when it takes a thread. The thread and the branch are made when they are not there. */
export interface ClaimRequest {
  readonly thread: string;
  /** The branch to run; the thread's head branch when absent. */
  readonly branch?: string | undefined;
  readonly graph: string;
  readonly version: number;
  /** Fingerprint of channels, nodes, edges and tools. */
  readonly shape: string;
  readonly at: number;
  /** Refuse a thread or a branch that does not exist yet, instead of making it. */
  readonly mustExist?: boolean;
  /**
   * A run begins, whose first commit comes before any of its work. A store may take the thread with that commit, in one
   * write, and refuse it with `fenced` where somebody else has come to the thread meanwhile. Through the same store it is
   * held from then on as after any other claim: what is queued or posted finds it, nobody removes it, forks it, or takes
   * another in under its id.
   */
  readonly begins?: boolean | undefined;
}

/** The thread as its new writer finds it. */
export interface Claim {
  readonly epoch: number;
  readonly branch: string;
  /** The next free sequence number of durable facts and the next free checkpoint id of the thread. */
  readonly nextSeq: number;
  readonly nextCheckpoint: number;
  /** What wrote the branch's newest checkpoint: graph, version and shape of the claim under which it was written; this claim's where there is none. */
  readonly writtenBy: WrittenBy;
  /** The branch's newest checkpoint; absent on a new thread. */
  readonly head: CheckpointRow | undefined;
  /** The newest run on the branch. */
  readonly run: RunRow | undefined;
  /** The previous owner did not let go: it died. */
  readonly recovered: boolean;
  /** How many runs are queued on the thread, over all its branches. */
  readonly queued: number;
}

/**
 * A checkpoint to write. Its predecessor's journal rows are folded: outcomes, and the rows of tasks, are kept for `once`
 * effects only. One that has the step of its predecessor goes on with that step: its journal stays as it is.
 */
export interface CheckpointWrite {
  readonly row: CheckpointRow;
  readonly deltas: readonly DeltaRow[];
}

/** One atomic write by the owner of a thread: all of it or nothing. */
export interface Commit {
  readonly thread: string;
  /**
   * The line to write: a branch, or a child line of one. The first checkpoint of a child line makes it: empty when that
   * checkpoint has no parent, and otherwise going on from the checkpoint of any line that it names, as a fork does.
   */
  readonly branch: string;
  readonly epoch: number;
  /** The last sequence number that this commit uses. */
  readonly seq: number;
  /** The number before the first that this commit uses: refused with `store_failed` where the thread has not come to it, since the write that was to bring it there has failed. */
  readonly after?: number | undefined;
  /** Comes with commits to branches only. A queued run begins with the first commit that has its row with another status. */
  readonly run?: RunRow | undefined;
  /** Insert or replace, by step, task and key. */
  readonly effects?: readonly EffectRow[];
  /** Journal rows of lines that the line stands inside, which the thread has: durable with this commit or not at all. */
  readonly around?: readonly LineJournal[] | undefined;
  readonly checkpoint?: CheckpointWrite | undefined;
  /** Insert or replace, by id. */
  readonly interrupts?: readonly InterruptRow[];
  /** Facts that become true with it and that no checkpoint tells. */
  readonly events?: readonly EventRow[] | undefined;
  /** What became of the line's timers, in order. */
  readonly timers?: readonly TimerChange[] | undefined;
  /** Letters of the line, by id, whose messages its checkpoint takes in: they leave the inbox with it. */
  readonly taken?: readonly string[] | undefined;
  /** A run of the line that is taken back with it: the letters that it took in wait again, each at its old place. Those of a run that ends in any other way are gone with its end. */
  readonly givenBack?: string | undefined;
  /** Artifacts of the effects that it writes: kept with their outcomes or not at all. */
  readonly artifacts?: readonly ArtifactWrite[] | undefined;
  /** Changes of the long-term store that become true with it, in order. */
  readonly longTerm?: readonly LongTermChange[] | undefined;
  /** Let the thread go in the same write. */
  readonly release?: boolean;
}

/** Journal rows of one line. */
export interface LineJournal {
  readonly line: string;
  /** Insert or replace, by step, task and key. */
  readonly effects: readonly EffectRow[];
}

/** A new branch that starts at a checkpoint of its thread, with one checkpoint of its own. */
export interface BranchWrite {
  readonly thread: string;
  readonly branch: string;
  readonly from: number;
  readonly checkpoint: CheckpointWrite;
  /** The new branch becomes the thread's head branch: the one that is meant where none is named. */
  readonly head?: boolean;
  /** Answered questions of the step of `from` that the new branch takes over, so that they are not asked again. */
  readonly interrupts: readonly InterruptRow[];
  /** Child lines of the new branch, each after its parent line, that go on from a checkpoint with one of their own. */
  readonly inner?: readonly {
    readonly line: string;
    readonly from: number;
    readonly checkpoint: CheckpointWrite;
  }[];
}

/** A run to put into the queue of a branch. */
export interface QueueWrite {
  readonly thread: string;
  /** The thread's head branch when absent. */
  readonly branch?: string | undefined;
  /** With the status `queued` and an input. */
  readonly run: Omit<RunRow, "thread" | "branch" | "stops">;
  /** How it ends the run that is the newest of the branch now. */
  readonly stops?: StopKind | undefined;
}

/** What to remove from a thread: nothing that a writer at work, a fork or an open question still needs. */
export interface PruneWrite extends Retention {
  readonly thread: string;
  /**
   * At most so many checkpoints go; all that may, when absent. Those of inner graphs go first, the innermost before all; of
   * lines of one depth the one with the lowest checkpoint id; of a line the oldest.
   */
  readonly limit?: number | undefined;
  /** The changes of one channel at checkpoints that go, oldest first, as fewer that lead to the same. */
  readonly merge: (rows: readonly CutDelta[]) => readonly CutDelta[];
}

/** Metadata of a run: it has each of these keys with this very value. */
export type MetadataFilter = Readonly<Record<string, string | number | boolean | null>>;

/** Which runs a list shows. Times are in milliseconds since the epoch, from `since` on and before `until`. */
export interface RunFilter {
  readonly thread?: string;
  /** One status, or any of several. */
  readonly status?: RunStatus | readonly RunStatus[];
  readonly graph?: string;
  /** The idempotency key of a run. */
  readonly key?: string;
  readonly metadata?: MetadataFilter;
  /** By the time of their start. */
  readonly since?: number;
  readonly until?: number;
  /** Those after this one in the list: the last row of a page gives the next. */
  readonly before?: Pick<RunRow, "thread" | "id"> | undefined;
  readonly limit?: number;
}

/** Which threads a list shows; `status` and `metadata` are those of a thread's newest run. */
export interface ThreadFilter {
  /** One status, or any of several. */
  readonly status?: RunStatus | readonly RunStatus[];
  readonly graph?: string;
  readonly metadata?: MetadataFilter;
  /** By the time of their last change. */
  readonly since?: number;
  readonly until?: number;
  /** Those after this one in the list: the last row of a page gives the next. */
  readonly before?: Pick<ThreadRow, "id" | "updatedAt"> | undefined;
  readonly limit?: number;
}

/** Which open questions a list shows. */
export interface QuestionFilter {
  readonly thread?: string;
  readonly graph?: string;
  readonly key?: string;
  /** Those whose time is not over then. */
  readonly at?: number;
  /** Those after this one in the list: the last row of a page gives the next. */
  readonly before?: Pick<QuestionRow, "place"> | undefined;
  readonly limit?: number;
}

/** A thread, as lists show it. */
export interface ThreadRow {
  readonly id: string;
  readonly graph: string;
  readonly version: number;
  readonly createdAt: number;
  /** When its newest checkpoint, run or question was written. */
  readonly updatedAt: number;
  readonly headBranch: string;
  readonly status: RunStatus | undefined;
}

/** What leads to one channel's value: a base (or nothing) and the deltas after it, oldest first. */
export interface ChannelRows {
  readonly channel: string;
  readonly deltas: readonly Pick<DeltaRow, "kind" | "text">[];
}

/** A checkpoint with the changes it holds. */
export interface CheckpointWithDeltas extends CheckpointRow {
  readonly deltas: readonly DeltaRow[];
}

/** A durable event as it is kept: a checkpoint with what it changed, or a fact. */
export type StoredEvent = { readonly checkpoint: CheckpointWithDeltas } | { readonly fact: EventRow };

/** A place that keeps threads. Reads may be made by anyone, writes by the owner of the thread. */
export interface Store {
  readonly name: string;
  /** Nobody outside this process can write to it: a run at work need not look for what others have sent. */
  readonly local?: boolean | undefined;
  /** Rows beside the threads, which no thread owns. Moving, pruning and deleting threads leave them as they are. */
  readonly longTerm: LongTermRows;
  /**
   * Take a thread as its one writer. Throws `thread_busy` while a living owner holds it, also when that is this store;
   * with `mustExist`, `unknown_thread` or `unknown_branch`.
   */
  claim(request: ClaimRequest): Promise<Claim>;
  /**
   * Queue an atomic write; it is refused with `fenced` once the thread was released or taken by another. `told` is
   * called once, synchronously after the write is durable or has failed, in the order of the calls; never inside this
   * call. A write without a checkpoint to a line that is not there is refused with `unknown_branch`, and so is the first
   * one to a child line whose parent line is not there; a name outside the grammar with `invalid_id`. A new run whose key
   * another run of the thread has, and a queued one that was cancelled meanwhile, is refused with `run_exists`. `queued` is
   * how many runs are queued on the thread when the write is durable.
   */
  commit(commit: Commit, told: (failure?: StatewrightError, queued?: number) => void): void;
  /**
   * Put a run behind what its branch is doing; anyone may, and nobody needs to own the thread. Runs of a branch stand in the
   * order of their calls. Gives the row as it is saved: where the thread has a run of that key already, that run's, and
   * nothing is written. Throws `unknown_thread`, `unknown_branch`.
   */
  enqueue(write: QueueWrite): Promise<RunRow>;
  /** Take a run out of the queue: it is `cancelled`. False when it does not stand there. Anyone may. */
  dequeue(thread: string, run: string, ended: { readonly at: number; readonly reason: string }): Promise<boolean>;
  /**
   * Put a letter into the inbox of a branch; anyone may, and nobody needs to own the thread. Letters stand in the order of
   * their calls. Gives the row as it is saved: where a letter of that id waits already, that one, and nothing is written.
   * Throws `unknown_thread`, `unknown_branch`, `invalid_id`.
   */
  post(write: LetterWrite): Promise<LetterRow>;
  /**
   * Make a branch, and its child lines, and give its first checkpoint as written: `id`, `seq` and `parent` are the
   * store's to choose. Throws `unknown_thread`, `unknown_checkpoint`, `thread_exists` when a name is taken,
   * `invalid_id` for a line that is not a child line of the branch, `thread_busy` while a living owner writes the thread.
   */
  branch(write: BranchWrite): Promise<CheckpointRow>;
  // What is not there reads as `undefined` or an empty list; only `state` throws `unknown_checkpoint`. Where a read takes
  // a branch, it takes a child line too; no list of threads, runs or branches shows child lines.
  thread(thread: string): Promise<ThreadRow | undefined>;
  /** Threads, most recently changed first; `status` is that of a thread's newest run, queued ones aside. */
  threads(filter?: ThreadFilter): Promise<readonly ThreadRow[]>;
  /** Branches, oldest first; `from` is the checkpoint that a fork started at, `head` the newest checkpoint of the line. */
  branches(
    thread: string,
  ): Promise<
    readonly { readonly name: string; readonly from: number | undefined; readonly head: number | undefined }[]
  >;
  /** Runs, those that began or were queued last before the others, whatever the clock said. */
  runs(filter?: RunFilter): Promise<readonly RunRow[]>;
  checkpoint(thread: string, id: number): Promise<CheckpointRow | undefined>;
  /** What wrote a checkpoint: graph, version and shape of the claim under which it was written. */
  writtenBy(thread: string, checkpoint: number): Promise<WrittenBy | undefined>;
  /** The newest checkpoint of a branch (default: the head branch). */
  head(thread: string, branch?: string): Promise<CheckpointRow | undefined>;
  /** One page of a branch's line of checkpoints, through its ancestors, newest first, with what each changed. */
  history(
    thread: string,
    page: { readonly branch?: string | undefined; readonly before?: number | undefined; readonly limit: number },
  ): Promise<readonly CheckpointWithDeltas[]>;
  /** What leads to every channel's value at a checkpoint. */
  state(thread: string, checkpoint: number): Promise<readonly ChannelRows[]>;
  /** Journal rows of one step of a branch, each step in the order of its first writing; all of the branch when `step` is absent. */
  effects(thread: string, branch: string, step?: number): Promise<readonly EffectRow[]>;
  /** Questions of a branch, answered and open, oldest first. */
  interrupts(thread: string, branch: string): Promise<readonly InterruptRow[]>;
  /**
   * What runs wait for, over all threads, those questions before the others that were asked last: the open ones of branches
   * whose newest run is `waiting`, written with the commit that made it wait or after it.
   */
  questions(filter?: QuestionFilter): Promise<readonly QuestionRow[]>;
  /** Runs of one kind that a process may go on with by itself; each page is found by an index, whatever else the store holds. */
  claimable(page: ClaimablePage): Promise<readonly RunRow[]>;
  /** The letters that wait for a branch, in the order in which they were posted. Asked at every boundary of a run that may take some. */
  inbox(thread: string, branch: string): Promise<readonly LetterRow[]>;
  /** Timers of all lines, those due first before the others, and those due together by id; `dueBy` ends the list at a time, that one included. */
  timers(filter?: {
    readonly thread?: string;
    readonly dueBy?: number;
    readonly limit?: number;
  }): Promise<readonly TimerRow[]>;
  /**
   * Durable events of a thread whose number is above `after`, in order: its checkpoints on all lines, and the facts
   * between them. `from` is a checkpoint that was read before: only later ones are looked for.
   */
  events(
    thread: string,
    page: { readonly after: number; readonly from?: number | undefined; readonly limit: number },
  ): Promise<readonly StoredEvent[]>;
  /** What tool calls of threads gave to be kept whole; it is removed with its thread. */
  readonly artifacts: KeptArtifacts;
  /** Remove a thread: no row of it is left. Throws `unknown_thread`, and `thread_busy` while a living owner holds it. */
  delete(thread: string): Promise<void>;
  /** A thread whole, as of one moment; anyone may ask, also while it is written. Throws `unknown_thread`. */
  image(thread: string): Promise<ThreadImage>;
  /** Take a thread in as its image has it; nobody owns it then. Throws `thread_exists`. */
  insert(image: ThreadImage): Promise<void>;
  /**
   * Remove old checkpoints; anyone may, also while the thread is written. In as many writes as it takes for others to come
   * in between: what a death leaves is whole, and the next call goes on from there. Gives how many went. Throws
   * `unknown_thread`.
   */
  prune(write: PruneWrite): Promise<number>;
  /** Give the room of what was removed back, and let no text of it be left behind. */
  vacuum(): Promise<void>;
  close(): void;
}
