/**
 * The store contract: what a place that keeps threads must do. Every value arrives encoded; a store moves text.
 *
 * One writer owns a thread at a time. It claims the thread, gets an epoch, and every commit carries that epoch: the
 * commit of a writer whose epoch is no longer the newest is refused whole with `fenced`.
 *
 * A thread has branches, and a branch has child lines: the rows of inner graphs. A child line is named by its parent
 * line, a "/" and an id, to any depth: `main/2:0`, `main/2:0/research`. Checkpoint ids and sequence numbers count over
 * all lines of a thread; each line has its own head, journal and questions.
 */
import type { StatewrightError } from "../base/errors.ts";
import type { CheckpointRow, DeltaRow, RunRow, RunStatus } from "./checkpoint.ts";
import type { EffectRow, InterruptRow } from "./journal.ts";
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
}

/** The thread as its new writer finds it. */
export interface Claim {
  readonly epoch: number;
  readonly branch: string;
  /** The next free sequence number of durable facts and the next free checkpoint id of the thread. */
  readonly nextSeq: number;
  readonly nextCheckpoint: number;
  /** What wrote the branch's newest checkpoint: graph, version and shape of the claim under which it was written; this claim's where there is none. */
  readonly writtenBy: { readonly graph: string; readonly version: number; readonly shape: string };
  /** The branch's newest checkpoint; absent on a new thread. */
  readonly head: CheckpointRow | undefined;
  /** The newest run on the branch. */
  readonly run: RunRow | undefined;
  /** The previous owner did not let go: it died. */
  readonly recovered: boolean;
}

/** A checkpoint to write. Its predecessor's journal rows are folded: outcomes are kept for `once` effects only. */
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
  /** Comes with commits to branches only. */
  readonly run?: RunRow | undefined;
  /** Insert or replace, by step, task and key. */
  readonly effects?: readonly EffectRow[];
  readonly checkpoint?: CheckpointWrite | undefined;
  /** Insert or replace, by id. */
  readonly interrupts?: readonly InterruptRow[];
  /** What became of the line's timers, in order. */
  readonly timers?: readonly TimerChange[] | undefined;
  /** Let the thread go in the same write. */
  readonly release?: boolean;
}

/** A new branch that starts at a checkpoint of its thread, with one checkpoint of its own. */
export interface BranchWrite {
  readonly thread: string;
  readonly branch: string;
  readonly from: number;
  readonly checkpoint: CheckpointWrite;
  /** Answered questions of the step of `from` that the new branch takes over, so that they are not asked again. */
  readonly interrupts: readonly InterruptRow[];
  /** Child lines of the new branch, each after its parent line, that go on from a checkpoint with one of their own. */
  readonly inner?: readonly {
    readonly line: string;
    readonly from: number;
    readonly checkpoint: CheckpointWrite;
  }[];
}

/** A thread, as lists show it. */
export interface ThreadRow {
  readonly id: string;
  readonly graph: string;
  readonly version: number;
  readonly createdAt: number;
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

/** A place that keeps threads. Reads may be made by anyone, writes by the owner of the thread. */
export interface Store {
  readonly name: string;
  /**
   * Take a thread as its one writer. Throws `thread_busy` while a living owner holds it, also when that is this store;
   * with `mustExist`, `unknown_thread` or `unknown_branch`.
   */
  claim(request: ClaimRequest): Promise<Claim>;
  /**
   * Queue an atomic write; it is refused with `fenced` once the thread was released or taken by another. `told` is
   * called once, synchronously after the write is durable or has failed, in the order of the calls; never inside this
   * call. A write without a checkpoint to a line that is not there is refused with `unknown_branch`, and so is the first
   * one to a child line whose parent line is not there; a name outside the grammar with `invalid_id`.
   */
  commit(commit: Commit, told: (failure?: StatewrightError) => void): void;
  /**
   * Make a branch, and its child lines, and give its first checkpoint as written: `id`, `seq` and `parent` are the
   * store's to choose. Throws `unknown_thread`, `unknown_checkpoint`, `thread_exists` when a name is taken,
   * `invalid_id` for a line that is not a child line of the branch, `thread_busy` while a living owner writes the thread.
   */
  branch(write: BranchWrite): Promise<CheckpointRow>;
  // What is not there reads as `undefined` or an empty list; only `state` throws `unknown_checkpoint`. Where a read takes
  // a branch, it takes a child line too; no list of threads, runs or branches shows child lines.
  thread(thread: string): Promise<ThreadRow | undefined>;
  /** Threads, most recently changed first; `status` is that of a thread's newest run. */
  threads(filter?: {
    readonly graph?: string;
    readonly status?: RunStatus;
    readonly limit?: number;
  }): Promise<readonly ThreadRow[]>;
  /** Branches, oldest first; `from` is the checkpoint that a fork started at, `head` the newest checkpoint of the line. */
  branches(
    thread: string,
  ): Promise<
    readonly { readonly name: string; readonly from: number | undefined; readonly head: number | undefined }[]
  >;
  /** Runs, those that began last before the others, whatever the clock said. */
  runs(filter?: {
    readonly thread?: string;
    readonly status?: RunStatus;
    readonly limit?: number;
  }): Promise<readonly RunRow[]>;
  checkpoint(thread: string, id: number): Promise<CheckpointRow | undefined>;
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
  /** Timers of all lines, those due first before the others, and those due together by id; `dueBy` ends the list at a time, that one included. */
  timers(filter?: {
    readonly thread?: string;
    readonly dueBy?: number;
    readonly limit?: number;
  }): Promise<readonly TimerRow[]>;
  close(): void;
}
