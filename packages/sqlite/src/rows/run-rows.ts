/** Rows of runs. */

import { checkId } from "@statewright/core/adapter";
import { type RunRow, storeRules } from "@statewright/core/store";
import {
  computeColumnSum,
  type Payload,
  type StoredStatus,
  toRunPayload,
  toStoredStatus,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Reader } from "../read/reader.ts";
import type { ClaimedThread, NamespaceState } from "../write/claimed-thread.ts";
import { changedRunSum, putRunSum } from "./row-sums.ts";
import type { ThreadRows } from "./thread-rows.ts";

/**
 * Condition under which the first queued run of a branch can start: the newest run of the branch has ended, or a queued
 * run pre-empts it. `run` is the table or the alias of the queued run.
 */
export function toStartCondition(run: string): string {
  return (
    "NOT EXISTS (SELECT 1 FROM branches b CROSS JOIN runs n ON n.key = b.run" +
    " WHERE b.key = " +
    run +
    ".branch AND n.status NOT IN ('done', 'cancelled') AND NOT EXISTS (SELECT 1 FROM runs p" +
    " INDEXED BY preempting_runs WHERE p.preempts = n.key AND p.preempts IS NOT NULL AND p.status = 'queued'))"
  );
}

/** Sets the turn of the first queued run of a branch if the run can start. */
const refreshTurn =
  "UPDATE runs SET turn = CASE WHEN " +
  toStartCondition("runs") +
  " THEN ifnull(tenant, '') END WHERE key = (SELECT q.key FROM runs q INDEXED BY queued_runs" +
  " WHERE q.thread = ? AND q.status = 'queued' AND q.branch = ? ORDER BY q.key LIMIT 1)";

function prepareStatements(db: Database) {
  return {
    runKey: db.prepare<[number, string], number>("SELECT key FROM runs WHERE thread = ? AND id = ?").pluck(),
    addRun: db.prepare(
      "INSERT INTO runs (thread, branch, id, graph, version, status, attempt, started, epoch, ended, error, name, metadata, input, more, tenant, user, priority, sum, preempts, key)" +
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    nextKey: db.prepare<[], number>("SELECT coalesce(max(key), 0) + 1 FROM runs").pluck(),
    changeRun: db.prepare(
      "UPDATE runs SET version = @version, status = @status, attempt = @attempt, epoch = @epoch, ended = @ended, error = @error," +
        " input = @input, more = @more, sum = " +
        changedRunSum +
        " WHERE key = @key",
    ),
    sumRun: db.prepare<[number]>(putRunSum),
    startRun: db.prepare<[number, number]>("UPDATE runs SET started = ?, turn = NULL WHERE key = ?"),
    knownRun: db.prepare<[number, string], KnownRun>(
      "SELECT r.key, r.branch, r.status, b.run IS r.key AS newest FROM runs r JOIN branches b ON b.key = r.branch WHERE r.thread = ? AND r.id = ?",
    ),
    queuedById: db
      .prepare<[string], number>(
        "SELECT 1 FROM runs INDEXED BY runs_by_id WHERE id = ? AND status IN ('queued', 'delayed') LIMIT 1",
      )
      .pluck(),
    cancelQueued: db.prepare<[number, Payload | null, number]>(
      "UPDATE runs SET status = 'cancelled', ended = ?, more = ?, input = NULL, turn = NULL WHERE key = ?",
    ),
    newestRunOfThread: db.prepare<[number, number]>(
      "UPDATE threads SET run = r.key, status = r.status FROM runs r WHERE r.key = ? AND threads.key = ?",
    ),
    statusOfThread: db.prepare<[StoredStatus, number, number, StoredStatus]>(
      "UPDATE threads SET status = ? WHERE key = ? AND run = ? AND status <> ?",
    ),
    refreshTurn: db.prepare<[number, number]>(refreshTurn),
    newestRunOfNamespace: db.prepare<[number, number]>("UPDATE branches SET run = ? WHERE key = ?"),
    moveRequests: db.prepare<[number, number, number]>("UPDATE requests SET run = ? WHERE branch = ? AND run = ?"),
    dropRun: db.prepare<[number]>("DELETE FROM runs WHERE key = ?"),
    addMetadata: db.prepare<[number, string, string]>("INSERT INTO run_metadata (run, name, value) VALUES (?, ?, ?)"),
  };
}

/** Row of a known run; `newest` is 1 for the newest run of the namespace. */
export interface KnownRun {
  readonly key: number;
  readonly branch: number;
  readonly status: StoredStatus;
  readonly newest: number;
}

/** Writes the rows of runs; call inside a transaction. */
export class RunRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #reader: Reader;
  readonly #threads: ThreadRows;

  constructor(db: Database, { reader, threads }: { readonly reader: Reader; readonly threads: ThreadRows }) {
    this.#sql = prepareStatements(db);
    this.#reader = reader;
    this.#threads = threads;
  }

  /** Returns the row key of the next run; no other run is written before the end of the transaction. */
  getNextKey(): number {
    return this.#sql.nextKey.get() ?? 1;
  }

  /** Finds the row key of a run. */
  findKey(thread: number, id: string): number | undefined {
    return this.#sql.runKey.get(thread, id);
  }

  /** Finds a run with its stored status. */
  find(thread: number, id: string): KnownRun | undefined {
    return this.#sql.knownRun.get(thread, id);
  }

  /** Returns true if a run with this id is queued on any thread, delayed or not. */
  isQueued(id: string): boolean {
    return this.#sql.queuedById.get(id) !== undefined;
  }

  /** Cancels a queued run. */
  cancelQueued(key: number, at: number, more: Payload | null): void {
    this.#sql.cancelQueued.run(at, more, key);
    this.#sql.sumRun.run(key);
  }

  /**
   * Marks the first queued run of a branch as startable, or unmarks it. Called after each change of the queue of the
   * branch or the status of its newest run.
   */
  refreshTurn(thread: number, branch: number): void {
    this.#sql.refreshTurn.run(thread, branch);
  }

  /** Replaces the row of a delayed run, behind all other rows: later inputs come later in lists and queues. */
  replaceDelayed(
    key: number,
    claimed: Pick<ClaimedThread, "key" | "cipher">,
    namespace: { readonly key: number; readonly preempts: number | undefined },
    run: RunRow,
  ): void {
    this.#sql.dropRun.run(key);
    const row = this.insert(claimed, namespace.key, run, { epoch: 0, preempts: namespace.preempts });
    this.#sql.moveRequests.run(row, namespace.key, key);
    this.refreshTurn(claimed.key, namespace.key);
  }

  /** Makes a run the newest run of its thread, which gets the status of the run. */
  setNewestOfThread(thread: number, key: number): void {
    this.#sql.newestRunOfThread.run(key, thread);
  }

  /** Makes a run the newest run of the namespace. */
  setNewestOfNamespace(namespace: number, key: number): void {
    this.#sql.newestRunOfNamespace.run(key, namespace);
  }

  /** Writes the row of a run; a new run, or a started queued run, becomes the newest run of the namespace. */
  put(
    claimed: ClaimedThread,
    { key: namespaceKey }: NamespaceState,
    run: RunRow,
  ): { readonly key: number; readonly starts: boolean } {
    if (claimed.run?.id === run.id) {
      // The fence of the commit has written the status of the thread.
      this.#update(claimed, claimed.run.key, run);
      return { key: claimed.run.key, starts: false };
    }
    if (claimed.firstRun !== undefined) {
      checkId("run", run.id);
      const key = this.insert(claimed, namespaceKey, run, { epoch: claimed.epoch, key: claimed.firstRun });
      claimed.firstRun = undefined;
      return { key, starts: false };
    }
    const known = this.#sql.knownRun.get(claimed.key, run.id);
    if (known === undefined) {
      checkId("run", run.id);
      if (run.key !== undefined && this.#reader.runs.findByKey(claimed.key, run.key) !== undefined)
        throw storeRules.createRunExistsError(run);
      const key = this.insert(claimed, namespaceKey, run, { epoch: claimed.epoch });
      this.#setNewest(claimed, namespaceKey, key);
      return { key, starts: false };
    }
    const starts = known.status === "queued";
    const wasQueued = known.newest === 0 && this.#reader.runs.get(known.key)?.queuedAt !== undefined;
    if (known.status === "delayed" || (!starts && wasQueued)) throw storeRules.createRunExistsError(run);
    this.#sql.statusOfThread.run(toStoredStatus(run), claimed.key, known.key, toStoredStatus(run));
    this.#update(claimed, known.key, run);
    if (starts) {
      this.#sql.startRun.run(run.startedAt, known.key);
      this.#sql.sumRun.run(known.key);
      this.#threads.countOwn(claimed.key, "queued", -1);
      this.#setNewest(claimed, namespaceKey, known.key);
    }
    return { key: known.key, starts };
  }

  #setNewest(claimed: ClaimedThread, namespaceKey: number, key: number): void {
    this.setNewestOfThread(claimed.key, key);
    this.setNewestOfNamespace(namespaceKey, key);
  }

  /** Inserts a run with its metadata; returns its row key. */
  insert(
    claimed: Pick<ClaimedThread, "key" | "cipher">,
    namespaceKey: number,
    run: RunRow,
    {
      epoch,
      preempts,
      key: rowKey,
    }: { readonly epoch: number; readonly preempts?: number | undefined; readonly key?: number },
  ): number {
    const { id, graph, version, attempt, startedAt, endedAt, key, metadata, tenant, owner } = run;
    const priority = run.priority ?? (run.status === "queued" ? 0 : null);
    const { error, input, more } = toRunPayload(claimed.cipher, run);
    const columns = [
      ...[
        claimed.key,
        namespaceKey,
        id,
        graph,
        version,
        toStoredStatus(run),
        attempt,
        startedAt,
        epoch,
        endedAt ?? null,
        error,
      ],
      ...[key ?? null, metadata === undefined ? null : JSON.stringify(metadata), input, more],
      ...[tenant ?? null, owner ?? null, priority],
    ];
    const added = this.#sql.addRun.run(...columns, computeColumnSum(columns), preempts ?? null, rowKey ?? null);
    const row = Number(added.lastInsertRowid);
    for (const [name, value] of Object.entries(metadata ?? {}))
      this.#sql.addMetadata.run(row, name, JSON.stringify(value));
    return row;
  }

  #update({ epoch, cipher }: ClaimedThread, key: number, run: RunRow): void {
    const { version, attempt, endedAt } = run;
    const statusColumns = { status: toStoredStatus(run), ended: endedAt ?? null };
    this.#sql.changeRun.run({ key, version, attempt, epoch, ...statusColumns, ...toRunPayload(cipher, run) });
  }
}
