/** Reads of the outbox. */

import type { StatewrightError } from "@statewright/core";
import type { OutboxClaim, OutboxFilter, OutboxRow, OutboxSubscription } from "@statewright/core/store";
import { listReadableRows, type OutboxColumns, readOutboxRow } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { ThreadCiphers } from "../read/thread-ciphers.ts";

/** Columns of an outbox row `o` of a thread `t`. */
export const outboxColumns: string =
  "o.key AS position, t.id AS thread, o.branch, o.consumer, o.id, o.topic, o.at, o.interrupt, o.state, o.attempts, o.due," +
  " o.finished, o.error, o.payload, o.sum";

const outboxFilter =
  " (@consumer IS NULL OR o.consumer = @consumer) AND (@topic IS NULL OR o.topic = @topic) AND (@state IS NULL OR o.state = @state)" +
  " AND o.key < @before ORDER BY o.key DESC LIMIT @limit";

interface ListParameters {
  readonly consumer: string | null;
  readonly thread: string | null;
  readonly topic: string | null;
  readonly state: string | null;
  readonly before: number;
  readonly limit: number;
}

interface DueParameters {
  readonly consumer: string;
  readonly at: number;
  /** Owners known to be dead, as a JSON array. */
  readonly dead: string;
  readonly limit: number;
}

function prepareStatements(db: Database) {
  return {
    list: db.prepare<[ListParameters], OutboxColumns>(
      "SELECT " + outboxColumns + " FROM outbox o CROSS JOIN threads t ON t.key = o.thread WHERE" + outboxFilter,
    ),
    listOfThread: db.prepare<[ListParameters], OutboxColumns>(
      "SELECT " +
        outboxColumns +
        " FROM threads t CROSS JOIN outbox o ON o.thread = t.key WHERE t.id = @thread AND" +
        outboxFilter,
    ),
    row: db.prepare<[number], OutboxColumns & { owner: number | null }>(
      "SELECT " + outboxColumns + ", o.owner FROM outbox o JOIN threads t ON t.key = o.thread WHERE o.key = ?",
    ),
    due: db.prepare<[DueParameters], OutboxColumns>(
      "SELECT " +
        outboxColumns +
        " FROM outbox o INDEXED BY pending_outbox CROSS JOIN threads t ON t.key = o.thread" +
        " WHERE o.consumer = @consumer AND o.state = 'pending' AND o.due <= @at" +
        " AND (o.owner IS NULL OR o.owner IN (SELECT value FROM json_each(@dead))) ORDER BY o.due, o.key LIMIT @limit",
    ),
    owners: db
      .prepare<[string, number], number>(
        "SELECT DISTINCT owner FROM outbox INDEXED BY pending_outbox" +
          " WHERE consumer = ? AND state = 'pending' AND due <= ? AND owner IS NOT NULL",
      )
      .pluck(),
    subscriptions: db.prepare<[], { consumer: string; topic: string }>(
      "SELECT consumer, topic FROM outbox_topics ORDER BY consumer, topic",
    ),
    isOpenInterrupt: db
      .prepare<[number, string, string], number>(
        "SELECT 1 FROM branches b JOIN interrupts i ON i.branch = b.key WHERE b.thread = ? AND b.name = ? AND i.id = ? AND i.awaited = 1",
      )
      .pluck(),
    hasBranch: db.prepare<[number, string], number>("SELECT 1 FROM branches WHERE thread = ? AND name = ?").pluck(),
  };
}

/** Reads rows of the outbox. */
export class OutboxReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #ciphers: ThreadCiphers;
  readonly #onFault: (fault: StatewrightError) => void;

  constructor(
    db: Database,
    { ciphers, onFault }: { readonly ciphers: ThreadCiphers; readonly onFault: (fault: StatewrightError) => void },
  ) {
    this.#sql = prepareStatements(db);
    this.#ciphers = ciphers;
    this.#onFault = onFault;
  }

  /** Lists rows, newest first. */
  list({ consumer, thread, topic, state, before, limit = -1 }: OutboxFilter): readonly OutboxRow[] {
    const parameters: ListParameters = {
      consumer: consumer ?? null,
      thread: thread ?? null,
      topic: topic ?? null,
      state: state ?? null,
      before: before?.position ?? Number.MAX_SAFE_INTEGER,
      limit,
    };
    return listReadableRows({
      thread,
      parameters,
      query: (wider) => (thread === undefined ? this.#sql.list.all(wider) : this.#sql.listOfThread.all(wider)),
      read: (columns) => this.#read(columns),
      onFault: this.#onFault,
    });
  }

  /** Lists due rows without a living owner, the longest due first. */
  listDue({ consumer, at, limit }: OutboxClaim, dead: readonly number[]): readonly OutboxRow[] {
    return listReadableRows({
      parameters: { consumer, at, dead: JSON.stringify(dead), limit },
      query: (wider) => this.#sql.due.all(wider),
      read: (columns) => this.#read(columns),
      onFault: this.#onFault,
    });
  }

  /** Lists the owners of due rows. */
  listOwners({ consumer, at }: OutboxClaim): readonly number[] {
    return this.#sql.owners.all(consumer, at);
  }

  /** Finds a row and its owner. */
  find(position: number): { readonly row: OutboxRow; readonly owner: number | null } | undefined {
    const found = this.#sql.row.get(position);
    return found === undefined ? undefined : { row: this.#read(found), owner: found.owner };
  }

  /** Lists the subscriptions, by consumer. */
  listSubscriptions(): readonly OutboxSubscription[] {
    const topics = new Map<string, string[]>();
    for (const { consumer, topic } of this.#sql.subscriptions.all())
      topics.set(consumer, [...(topics.get(consumer) ?? []), topic]);
    return [...topics].map(([consumer, all]) => ({ consumer, topics: all }));
  }

  /** Returns true for an existing namespace, in which the interrupt is open if one is given. */
  isAbout(thread: number, branch: string, interrupt: string | undefined): boolean {
    const found =
      interrupt === undefined
        ? this.#sql.hasBranch.get(thread, branch)
        : this.#sql.isOpenInterrupt.get(thread, branch, interrupt);
    return found !== undefined;
  }

  #read(columns: OutboxColumns): OutboxRow {
    return readOutboxRow(this.#ciphers.get(columns.thread), columns);
  }
}
