/** Fence of commits: checks the epoch of a claim, and writes the head of the thread where the row needs it. */

import { type Commit, type InputCounts, storeRules } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { threadHeadCheckpoint, threadHeadSeq, threadHeadTime } from "../read/thread-head.ts";
import type { ClaimedThread, ThreadHead } from "./claimed-thread.ts";

const emptyThreadHead: ThreadHead = { seq: 0, checkpoint: 0, updated: 0 };

function prepareStatements(db: Database) {
  return {
    fence: db.prepare<[number, number, number, number | null, number | null, number, number, number, number]>(
      "UPDATE threads SET seq = ?, checkpoint = ?, updated = max(updated, ?), graph = coalesce(?, graph), owner = ?" +
        " WHERE key = ? AND epoch = ? AND owner = ? AND input = ?",
    ),
    inputOfThread: db
      .prepare<[number, number, number], number>("SELECT input FROM threads WHERE key = ? AND epoch = ? AND owner = ?")
      .pluck(),
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
  checkAndWriteHead(
    commit: Commit,
    claimed: ClaimedThread,
    self: number,
    { seq, checkpoint, updated }: ThreadHead,
  ): void {
    const graph = commit.checkpoint === undefined ? null : claimed.writer.key;
    const owner = commit.release === true ? null : self;
    while (
      this.#sql.fence.run(seq, checkpoint, updated, graph, owner, claimed.key, commit.epoch, self, claimed.input)
        .changes === 0
    )
      this.check(commit, claimed, self);
  }
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
