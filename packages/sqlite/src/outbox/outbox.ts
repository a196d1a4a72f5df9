/** Outbox: messages about saved events, claimed by the processes of their consumers. */

import {
  type Commit,
  type OutboxClaim,
  type OutboxOutcome,
  type OutboxRow,
  type OutboxSubscription,
  type OutboxSweep,
  outboxRules,
  type ThreadOutboxWrite,
} from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import type { Owner } from "../file/owner.ts";
import type { Reader } from "../read/reader.ts";
import type { ThreadRows } from "../rows/thread-rows.ts";
import type { ClaimedThread } from "../write/claimed-thread.ts";
import { OutboxRows } from "./outbox-rows.ts";

function prepareStatements(db: Database) {
  return {
    dropTopics: db.prepare<[string]>("DELETE FROM outbox_topics WHERE consumer = ?"),
    addTopic: db.prepare<[string, string]>("INSERT INTO outbox_topics (topic, consumer) VALUES (?, ?)"),
    dropPending: db.prepare<[string]>("DELETE FROM outbox WHERE consumer = ? AND state = 'pending'"),
    claim: db.prepare<[number, number]>("UPDATE outbox SET owner = ? WHERE key = ?"),
    release: db.prepare<[number]>("UPDATE outbox SET owner = NULL WHERE key = ?"),
    sweep: db.prepare<[string, number, number]>(
      "DELETE FROM outbox WHERE key IN (SELECT o.key FROM outbox o INDEXED BY finished_outbox" +
        " WHERE o.consumer = ? AND o.state <> 'pending' AND o.finished < ? AND NOT EXISTS (SELECT 1 FROM branches b" +
        " JOIN interrupts i ON i.branch = b.key WHERE b.thread = o.thread AND b.name = o.branch AND i.id = o.interrupt" +
        " AND i.awaited = 1) ORDER BY o.finished LIMIT ?)",
    ),
  };
}

/** Parts of the outbox. */
export interface OutboxParts {
  readonly owner: Owner;
  readonly reader: Reader;
  readonly threads: ThreadRows;
}

/** Writes and claims rows of the outbox; call inside a transaction. */
export class Outbox {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #rows: OutboxRows;
  readonly #parts: OutboxParts;

  constructor(db: Database, parts: OutboxParts) {
    this.#sql = prepareStatements(db);
    this.#rows = new OutboxRows(db);
    this.#parts = parts;
  }

  /** Writes the messages of a commit. */
  write(claimed: ClaimedThread, { branch, outbox = [] }: Commit): void {
    outboxRules.checkOutboxWrites(outbox);
    for (const write of outbox) this.#rows.add(claimed, branch, write);
  }

  /** Writes messages outside of a commit. */
  add(writes: readonly ThreadOutboxWrite[]): void {
    const { reader, threads } = this.#parts;
    for (const { thread, branch, ...write } of writes) {
      const state = threads.find(thread);
      if (state === undefined || !reader.outbox.isAbout(state.key, branch, write.interrupt)) continue;
      this.#rows.add({ key: state.key, id: thread, cipher: reader.ciphers.get(thread) }, branch, write);
    }
  }

  /** Sets the topics of a consumer. */
  subscribe({ consumer, topics }: OutboxSubscription): void {
    this.#sql.dropTopics.run(consumer);
    for (const topic of new Set(topics)) this.#sql.addTopic.run(topic, consumer);
    if (topics.length === 0) this.#sql.dropPending.run(consumer);
  }

  /** Claims due rows for this owner. */
  claim(request: OutboxClaim): readonly OutboxRow[] {
    const { owner, reader } = this.#parts;
    const rows = reader.outbox.listDue(request, owner.listDead());
    if (rows.length === 0) return rows;
    const self = owner.getId() ?? owner.register(request.at);
    for (const { position } of rows) this.#sql.claim.run(self, position);
    return rows;
  }

  /** Saves the outcome of a row; returns false for a row that this owner has not claimed. */
  finish(position: number, outcome: OutboxOutcome): boolean {
    const found = this.#parts.reader.outbox.find(position);
    if (found === undefined || found.owner === null || found.owner !== this.#parts.owner.getId()) return false;
    if (outcome.kind === "released") this.#sql.release.run(position);
    else this.#change(found.row, outboxRules.applyOutcome(found.row, outcome));
    return true;
  }

  /** Makes a finished row pending again. */
  retry(position: number, at: number): boolean {
    const found = this.#parts.reader.outbox.find(position);
    if (found === undefined || found.row.state === "pending") return false;
    const { finishedAt: _, ...row } = found.row;
    this.#change(row, { ...row, state: "pending", attempts: 0, dueAt: at });
    return true;
  }

  /** Deletes finished rows; returns their number. */
  sweep({ consumer, finishedBefore, limit }: OutboxSweep): number {
    return this.#sql.sweep.run(consumer, finishedBefore, limit).changes;
  }

  #change(row: OutboxRow, change: outboxRules.OutboxChange): void {
    this.#rows.change(this.#parts.reader.ciphers.get(row.thread), row, change);
  }
}
