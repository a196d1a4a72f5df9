/** Reads of durable events. */

import type { CheckpointWithDeltas, EventRow, StoredEvent } from "@statewright/core/store";
import { type EventColumns, readEvent } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { CheckpointReader } from "./checkpoint-reader.ts";
import type { ThreadCiphers } from "./thread-ciphers.ts";
import { threadHeadCheckpoint } from "./thread-head.ts";

function prepareStatements(db: Database) {
  return {
    nextOnBranches: db
      .prepare<[{ thread: string; id: number }], number | null>(
        "SELECT min((SELECT c.key & 0xffffff FROM checkpoints c WHERE c.key BETWEEN (b.key << 24) + @id AND (b.key << 24) + 0xffffff ORDER BY c.key LIMIT 1))" +
          " FROM threads t JOIN branches b ON b.thread = t.key AND instr(b.name, '/') = 0 WHERE t.id = @thread",
      )
      .pluck(),
    nextOnChildNamespaces: db
      .prepare<[{ thread: string; id: number }], number | null>(
        "SELECT x.key & 0xffffff FROM threads t JOIN child_checkpoints x ON x.key BETWEEN (t.key << 24) + @id AND (t.key << 24) + 0xffffff" +
          " WHERE t.id = @thread ORDER BY x.key LIMIT 1",
      )
      .pluck(),
    lastOfThread: db
      .prepare<[string], number>("SELECT " + threadHeadCheckpoint + " FROM threads t WHERE t.id = ?")
      .pluck(),
    eventsBetween: db.prepare<[string, number, number, number], EventColumns>(
      "SELECT e.seq, b.name AS branch, e.at, e.sum, e.text FROM threads t JOIN events e ON e.thread = t.key JOIN branches b ON b.key = e.branch" +
        " WHERE t.id = ? AND e.seq > ? AND e.seq < ? ORDER BY e.seq LIMIT ?",
    ),
  };
}

/** Reads the events of a thread in the order of their numbers. */
export class EventReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #ciphers: ThreadCiphers;
  readonly #checkpoints: CheckpointReader;

  constructor(
    db: Database,
    { ciphers, checkpoints }: { readonly ciphers: ThreadCiphers; readonly checkpoints: CheckpointReader },
  ) {
    this.#sql = prepareStatements(db);
    this.#ciphers = ciphers;
    this.#checkpoints = checkpoints;
  }

  /** Lists the events of a thread after an event number, in pages. */
  list(
    thread: string,
    { after, from, limit }: { readonly after: number; readonly from?: number | undefined; readonly limit: number },
  ): readonly StoredEvent[] {
    const checkpoints: CheckpointWithDeltas[] = [];
    let id = this.#getNextId(thread, from === undefined ? this.#findFirstIdAfter(thread, after) : from + 1);
    for (; id !== undefined && checkpoints.length < limit; id = this.#getNextId(thread, id + 1)) {
      const found = this.#checkpoints.findUnverified(thread, id);
      if (found !== undefined && found.seq > after) checkpoints.push(this.#checkpoints.verify(thread, found));
    }
    const until = id === undefined ? Number.MAX_SAFE_INTEGER : (checkpoints[checkpoints.length - 1]?.seq ?? 0);
    const durableEvents = this.#sql.eventsBetween
      .all(thread, after, until, limit)
      .map((columns): StoredEvent => ({ durableEvent: readEvent(this.#ciphers.get(thread), thread, columns) }));
    const getSeq = (event: StoredEvent): number =>
      "durableEvent" in event ? event.durableEvent.seq : event.checkpoint.seq;
    return [...durableEvents, ...checkpoints.map((checkpoint) => ({ checkpoint }))]
      .sort((left, right) => getSeq(left) - getSeq(right))
      .slice(0, limit);
  }

  /** Lists the durable events of a thread that are not derived from checkpoints. */
  listDurable(thread: string): readonly EventRow[] {
    return this.#sql.eventsBetween
      .all(thread, -1, Number.MAX_SAFE_INTEGER, -1)
      .map((row) => readEvent(this.#ciphers.get(thread), thread, row));
  }

  /** Returns the first checkpoint id of a thread from an id on, in any namespace. */
  #getNextId(thread: string, id: number): number | undefined {
    const found = [
      this.#sql.nextOnBranches.get({ thread, id }),
      this.#sql.nextOnChildNamespaces.get({ thread, id }),
    ].filter((next) => next != null);
    return found.length === 0 ? undefined : Math.min(...found);
  }

  /** Returns the first checkpoint id whose event number can exceed `after`: both numbers increase together. */
  #findFirstIdAfter(thread: string, after: number): number {
    let low = 1;
    let high = after <= 0 ? 1 : (this.#sql.lastOfThread.get(thread) ?? 0) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const id = this.#getNextId(thread, middle);
      const seq = id === undefined ? undefined : this.#checkpoints.findUnverified(thread, id)?.seq;
      if (seq === undefined || seq > after) high = middle;
      else low = (id ?? middle) + 1;
    }
    return low;
  }
}
