/** Fence of commits: checks the epoch of a claim, and writes the head of the thread where the row needs it. */

import { type Commit, type InputCounts, storeRules } from "@statewright/core/store";
import { toStoredStatus } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { threadHeadCheckpoint, threadHeadSeq, threadHeadTime } from "../read/thread-head.ts";
import type { ThreadState } from "../rows/thread-rows.ts";
import type { ClaimedThread, ThreadHead } from "./claimed-thread.ts";

const emptyThreadHead: ThreadHead = { seq: 0, checkpoint: 0, updated: 0 };

/** Assignments of {@link toHeadColumns}. The status of a thread is that of its newest run. */
const headAssignments =
  "seq = ?, checkpoint = ?, updated = max(updated, ?), graph = coalesce(?, graph), owner = ?," +
  " status = CASE WHEN run = ? THEN ? ELSE status END";

function prepareStatements(db: Database) {
  return {
    fence: db.prepare(
      "UPDATE threads SET " + headAssignments + " WHERE key = ? AND epoch = ? AND owner = ? AND input = ?",
    ),
    claimUnchanged: db
      .prepare<unknown[], number>(
        "UPDATE threads SET epoch = epoch + 1, " +
          headAssignments +
          " WHERE key = ? AND id = ? AND epoch = ? AND owner IS NULL AND seq = ? AND checkpoint = ? AND updated = ? RETURNING input",
      )
      .pluck(),
    inputOfThread: db
      .prepare<[number, number, number], number>("SELECT input FROM threads WHERE key = ? AND epoch = ? AND owner = ?")
      .pluck(),
    inputsOfThread: db.prepare<[number], InputCounts & { input: number }>(
      "SELECT queued, messages, requests, input FROM threads WHERE key = ?",
    ),
    countsOfThread: db.prepare<[number], InputCounts>("SELECT queued, messages, requests FROM threads WHERE key = ?"),
    headOfThread: db.prepare<[number], ThreadHead>(
      "SELECT " +
        threadHeadSeq +
        " AS seq, " +
        threadHeadCheckpoint +
        " AS checkpoint, " +
        threadHeadTime +
        " AS updated FROM threads t WHERE t.key = ?",
    ),
  };
}

/** Checks commits against the row of their thread. */
export class Fence {
  readonly #sql: ReturnType<typeof prepareStatements>;
  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Returns the head of a thread, cached or from the file. */
  getHead(claimed: ClaimedThread): ThreadHead {
    return claimed.head ?? this.#sql.headOfThread.get(claimed.key) ?? emptyThreadHead;
  }

  /** Checks the epoch without a write to the row of the thread. */
  check(commit: Commit, claimed: ClaimedThread, self: number): void {
    const input = this.#sql.inputOfThread.get(claimed.key, commit.epoch, self);
    if (input === undefined) throw storeRules.createFencedError(commit);
    if (input !== claimed.input) Object.assign(claimed, this.#sql.countsOfThread.get(claimed.key), { input });
  }

  /**
   * Checks the epoch and writes the head of the thread. Changed inputs are counted again: an input
   * does not fence a run.
   */
  checkAndWriteHead(commit: Commit, claimed: ClaimedThread, self: number, head: ThreadHead): void {
    const columns = toHeadColumns(commit, claimed, self, head);
    while (this.#sql.fence.run(...columns, claimed.key, commit.epoch, self, claimed.input).changes === 0)
      this.check(commit, claimed, self);
  }

  /** Ends the claim of a thread by this commit, which has checked the epoch and written the head. */
  finishClaim(claimed: ClaimedThread): void {
    claimed.claimedBy = undefined;
    if (claimed.input < 0) Object.assign(claimed, this.#sql.inputsOfThread.get(claimed.key));
  }

  /**
   * Claims a thread that has not changed, and writes its head after a commit; false if the thread has changed. New
   * inputs are counted again by the commit.
   */
  claimUnchanged(commit: Commit, claimed: ClaimedThread, self: number, before: ThreadState): boolean {
    const { key, epoch, seq, checkpoint, updated } = before;
    const columns = toHeadColumns(commit, claimed, self, advanceHead(commit, before));
    const input = this.#sql.claimUnchanged.get(...columns, key, claimed.id, epoch, seq, checkpoint, updated);
    if (input === undefined) return false;
    if (input !== claimed.input) claimed.input = -1;
    claimed.claimedBy = commit;
    return true;
  }
}

function toHeadColumns(
  { checkpoint: write, release, run }: Commit,
  claimed: ClaimedThread,
  self: number,
  { seq, checkpoint, updated }: ThreadHead,
): readonly unknown[] {
  const graph = write === undefined ? null : claimed.writer.key;
  const isKnown = run !== undefined && claimed.run?.id === run.id;
  const status = isKnown ? [claimed.run?.key, toStoredStatus(run)] : [null, null];
  return [seq, checkpoint, updated, graph, release === true ? null : self, ...status];
}

/** Returns the head of a thread after a commit. */
export function advanceHead(commit: Commit, { seq, checkpoint, updated }: ThreadHead): ThreadHead {
  return {
    seq: Math.max(seq, commit.seq),
    checkpoint: Math.max(checkpoint, commit.checkpoint?.row.id ?? 0),
    updated: Math.max(updated, storeRules.getChangeTime(commit)),
  };
}

/**
 * Returns true if the row of a thread needs no update because the checkpoint contains the same data: a superstep, or
 * journal rows only. Lists read the checkpoints only of threads with an active run.
 */
export function isRowUnchanged(
  { checkpoint, run, events, release }: Commit,
  { hasGraph, run: activeRun }: ClaimedThread,
  oldHead: ThreadHead,
  newHead: ThreadHead,
): boolean {
  if (run !== undefined || release === true || (events !== undefined && events.length > 0)) return false;
  if (checkpoint === undefined) return newHead.seq === oldHead.seq && newHead.updated === oldHead.updated;
  const { id, seq, at } = checkpoint.row;
  return (
    hasGraph && activeRun !== undefined && id === newHead.checkpoint && seq === newHead.seq && at === newHead.updated
  );
}
