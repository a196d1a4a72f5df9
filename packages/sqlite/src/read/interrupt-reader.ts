/** Reads of interrupts. */

import type { StatewrightError } from "@statewright/core";
import type { InterruptRow, OpenInterruptFilter, OpenInterruptRow, OverduePage } from "@statewright/core/store";
import {
  type InterruptColumns,
  listReadableRows,
  type OpenInterruptColumns,
  readInterrupt,
  toInterruptRow,
  toOpenInterruptRow,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { hasMetadata, hasParties, isNotDone } from "./list-filters.ts";
import { type ListIndexes, maxSortedRows } from "./list-indexes.ts";
import type { NamespaceReader, NamespaceRow } from "./namespace-reader.ts";
import type { ThreadCiphers } from "./thread-ciphers.ts";

const openInterruptColumns =
  "SELECT i.key AS position, t.id AS thread, b.name AS branch, r.id AS run, r.graph, i.id, i.step, i.task, i.node, i.name, i.payload," +
  " i.schema, i.raised, i.expires, i.answer, i.answered, i.more, i.sum FROM ";

const openInterruptFilter =
  " AND i.awaited = 1 AND i.key < @before AND (@graph IS NULL OR r.graph = @graph) AND (@name IS NULL OR i.name = @name)" +
  " AND (i.expires IS NULL OR i.expires > @at)" +
  hasParties("r") +
  hasMetadata +
  " ORDER BY i.key DESC LIMIT @limit";

/** Reads in the order of the index of awaited interrupts, up to the limit. */
const openInterruptList =
  openInterruptColumns +
  "interrupts i INDEXED BY awaited_interrupts CROSS JOIN branches b ON b.key = i.branch CROSS JOIN threads t ON t.key = b.thread" +
  " CROSS JOIN runs r ON r.key = b.run WHERE TRUE" +
  openInterruptFilter;

const openInterruptListOfThread =
  openInterruptColumns +
  "threads t CROSS JOIN branches b INDEXED BY branches_of_thread ON b.thread = t.key AND instr(b.name, '/') = 0" +
  " CROSS JOIN runs r ON r.key = b.run CROSS JOIN interrupts i INDEXED BY awaited_interrupts_of_branch ON i.branch = b.key" +
  " WHERE t.id = @thread" +
  openInterruptFilter;

/** Through the runs of a tenant that are not done, which are few. */
const openInterruptListOfTenant =
  openInterruptColumns +
  "runs r INDEXED BY runs_of_tenant_by_status CROSS JOIN branches b ON b.key = r.branch AND b.run = r.key CROSS JOIN threads t ON t.key = r.thread" +
  " CROSS JOIN interrupts i INDEXED BY awaited_interrupts_of_branch ON i.branch = b.key" +
  " WHERE r.tenant = @tenant AND r.tenant IS NOT NULL" +
  isNotDone +
  openInterruptFilter;

/** In the order of the index of awaited interrupts, up to the first interrupt raised later. */
const overdueInterruptList =
  openInterruptColumns +
  "interrupts i INDEXED BY awaited_interrupts CROSS JOIN branches b ON b.key = i.branch CROSS JOIN threads t ON t.key = b.thread" +
  " CROSS JOIN runs r ON r.key = b.run WHERE i.awaited = 1 AND i.key > @start AND i.key < coalesce((SELECT min(key) FROM interrupts" +
  " INDEXED BY awaited_interrupts WHERE awaited = 1 AND key > @start AND raised > @raisedBy), 9007199254740991)" +
  " AND NOT EXISTS (SELECT 1 FROM outbox o WHERE o.thread = t.key AND o.consumer = @consumer AND o.topic = @topic" +
  " AND o.branch = b.name AND o.interrupt = i.id) ORDER BY i.key LIMIT @limit";

interface OverdueParameters {
  readonly consumer: string;
  readonly topic: string;
  readonly start: number;
  readonly raisedBy: number;
  readonly limit: number;
}

interface OpenInterruptParameters {
  readonly graph: string | null;
  readonly tenant: string | null;
  readonly user: string | null;
  readonly name: string | null;
  readonly metadata: string | null;
  readonly at: number;
  readonly before: number;
  readonly limit: number;
}

function prepareStatements(db: Database) {
  return {
    awaitedOfNamespace: db
      .prepare<[number], string>("SELECT id FROM interrupts WHERE branch = ? AND awaited = 1 ORDER BY key")
      .pluck(),
    interruptList: db.prepare<[number], Omit<InterruptColumns, "branch">>(
      "SELECT id, step, task, node, name, payload, schema, raised, expires, answer, answered, more, sum FROM interrupts" +
        " WHERE branch = ? ORDER BY key",
    ),
    openInterrupts: db.prepare<[OpenInterruptParameters], OpenInterruptColumns>(openInterruptList),
    openInterruptsOfTenant: db.prepare<[OpenInterruptParameters], OpenInterruptColumns>(openInterruptListOfTenant),
    overdueInterrupts: db.prepare<[OverdueParameters], OpenInterruptColumns>(overdueInterruptList),
    openInterruptsOfThread: db.prepare<[OpenInterruptParameters & { thread: string }], OpenInterruptColumns>(
      openInterruptListOfThread,
    ),
  };
}

/** Reads the interrupts of a namespace, and the open interrupts of all threads. */
export class InterruptReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #ciphers: ThreadCiphers;
  readonly #namespaces: NamespaceReader;
  readonly #indexes: ListIndexes;
  readonly #onFault: (fault: StatewrightError) => void;

  constructor(
    db: Database,
    {
      ciphers,
      namespaces,
      indexes,
      onFault,
    }: {
      readonly ciphers: ThreadCiphers;
      readonly namespaces: NamespaceReader;
      readonly indexes: ListIndexes;
      readonly onFault: (fault: StatewrightError) => void;
    },
  ) {
    this.#sql = prepareStatements(db);
    this.#ciphers = ciphers;
    this.#namespaces = namespaces;
    this.#indexes = indexes;
    this.#onFault = onFault;
  }

  /** Lists the interrupts of a namespace, including answered ones. */
  list(thread: string, branch: string): readonly InterruptRow[] {
    const namespace = this.#namespaces.find(thread, branch);
    return namespace === undefined ? [] : this.listOfNamespace(thread, namespace);
  }

  /** Lists the interrupts of a namespace whose row is known, including answered ones. */
  listOfNamespace(thread: string, { key, name: branch }: NamespaceRow): readonly InterruptRow[] {
    const cipher = this.#ciphers.get(thread);
    return this.#sql.interruptList
      .all(key)
      .map((row) => toInterruptRow(readInterrupt(cipher, thread, { ...row, branch })));
  }

  /** Lists the open interrupts, newest first: of a thread, or of all. */
  listOpen(filter: OpenInterruptFilter): readonly OpenInterruptRow[] {
    const { thread, graph, key, tenant, owner, metadata, at, before, limit } = filter;
    const parameters: OpenInterruptParameters = {
      graph: graph ?? null,
      tenant: tenant ?? null,
      user: owner ?? null,
      name: key ?? null,
      metadata: metadata === undefined ? null : JSON.stringify(metadata),
      at: at ?? Number.NEGATIVE_INFINITY,
      before: before?.position ?? Number.MAX_SAFE_INTEGER,
      limit: limit ?? -1,
    };
    return listReadableRows({
      thread,
      parameters,
      query: (wider) =>
        thread === undefined
          ? this.#selectQuery(tenant).all(wider)
          : this.#sql.openInterruptsOfThread.all({ ...wider, thread }),
      read: (row) => this.#toOpenRow(row),
      onFault: this.#onFault,
    });
  }

  /** Lists open interrupts without a message, oldest first, up to the first interrupt raised later than `raisedBy`. */
  listOverdue({ consumer, topic, after, raisedBy, limit }: OverduePage): readonly OpenInterruptRow[] {
    return listReadableRows({
      parameters: { consumer, topic, start: after?.position ?? 0, raisedBy, limit },
      query: (wider) => this.#sql.overdueInterrupts.all(wider),
      read: (row) => this.#toOpenRow(row),
      onFault: this.#onFault,
    });
  }

  #toOpenRow(row: OpenInterruptColumns): OpenInterruptRow {
    return toOpenInterruptRow(readInterrupt(this.#ciphers.get(row.thread), row.thread, row));
  }

  /** Selects the query for the open interrupts of all threads. */
  #selectQuery(tenant: string | undefined): ReturnType<typeof prepareStatements>["openInterrupts"] {
    const isRare = tenant !== undefined && this.#indexes.countOpenRunsOfTenant(tenant) < maxSortedRows;
    return isRare ? this.#sql.openInterruptsOfTenant : this.#sql.openInterrupts;
  }

  /** Lists the ids of the interrupts awaited by the run of a namespace. */
  listAwaited(namespace: NamespaceRow): readonly string[] {
    return this.#sql.awaitedOfNamespace.all(namespace.key);
  }
}
