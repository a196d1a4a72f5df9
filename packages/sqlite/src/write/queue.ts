/** Queue of runs. */

import { checkId } from "@statewright/core/adapter";
import { type QueueWrite, type RunRow, storeRules, threadRules } from "@statewright/core/store";
import { toRunPayload } from "@statewright/store-kit";
import type { NamespaceRow } from "../read/namespace-reader.ts";
import type { Reader } from "../read/reader.ts";
import type { WriterRows } from "./writer-rows.ts";

/** Enqueues and dequeues runs; call inside a transaction. */
export class Queue {
  readonly #rows: WriterRows;
  readonly #reader: Reader;

  constructor(rows: WriterRows, reader: Reader) {
    this.#rows = rows;
    this.#reader = reader;
  }

  /**
   * Enqueues a run; returns the existing run for a known idempotency key. A thread with the epoch `releasedEpoch`
   * counts as released.
   */
  enqueue(write: QueueWrite, releasedEpoch: number | undefined): RunRow {
    const { thread, branch, run, stops } = write;
    checkId("run", run.id);
    if (write.creates !== undefined && this.#rows.threads.find(thread) === undefined)
      this.#createThread(write, write.creates);
    const state = this.#rows.threads.get(thread);
    const namespace = this.#reader.namespaces.find(thread, branch);
    if (namespace === undefined || storeRules.isChildNamespace(namespace.name))
      throw storeRules.createUnknownBranchError(thread, branch ?? state.head);
    threadRules.checkTenant("run", { id: thread, tenant: state.tenant ?? undefined }, run.tenant);
    const known = run.key === undefined ? undefined : this.#reader.runs.findByKey(state.key, run.key);
    if (known !== undefined) return known;
    if (write.mustBeIdle === true) {
      this.#rows.threads.refuseLiveOwner(thread, state, releasedEpoch);
      this.#checkIdle(thread, namespace);
    }
    const newest = namespace.run === null || stops === undefined ? undefined : this.#reader.runs.get(namespace.run);
    const row: RunRow = {
      ...run,
      ...(state.tenant === null ? {} : { tenant: state.tenant }),
      thread,
      branch: namespace.name,
      ...(stops === undefined || newest === undefined ? {} : { stops: { run: newest.id, how: stops } }),
    };
    if (this.#rows.runs.find(state.key, run.id) !== undefined || this.#rows.runs.isQueued(run.id))
      throw storeRules.createRunExistsError(row);
    const preempts = newest === undefined ? undefined : (namespace.run ?? undefined);
    const cipher = this.#reader.ciphers.get(thread);
    this.#rows.runs.insert({ key: state.key, cipher }, namespace.key, row, { epoch: 0, preempts });
    this.#rows.runs.refreshTurn(state.key, namespace.key);
    this.#rows.threads.countQueued(state.key, 1);
    return row;
  }

  /** Creates the thread of a queued run. */
  #createThread(
    { thread: id, branch: head = "main", run: { tenant, owner } }: QueueWrite,
    creates: NonNullable<QueueWrite["creates"]>,
  ): void {
    const { at, keySalt: salt = "", outline } = creates;
    checkId("branch", head);
    threadRules.checkParties("run", { tenant, owner });
    const { threads, details: detailRows, graphs, namespaces } = this.#rows;
    const { key: graph } = graphs.getWriter(creates, outline);
    const details = threadRules.toThreadDetails({ tenant, owner });
    const { key } = threads.create({ id, salt, head, graph, at, details });
    if (tenant !== undefined || owner !== undefined) detailRows.put({ key, id }, undefined, details);
    namespaces.add(key, head);
  }

  /** Throws `thread_busy` if a branch has an unfinished or a queued run. */
  #checkIdle(thread: string, { name, run }: NamespaceRow): void {
    const newest = run === null ? undefined : this.#reader.runs.get(run);
    if (newest !== undefined && storeRules.isUnfinishedRun(newest)) throw storeRules.createNotIdleError(newest);
    const queue = { thread, branch: name, status: "queued", order: "oldest", limit: 1 } as const;
    const [queued] = this.#reader.runs.list(queue, ["queued"], []);
    if (queued !== undefined) throw storeRules.createNotIdleError(queued);
  }

  /** Cancels a queued run; false if the run is not queued. */
  dequeue(thread: string, id: string, { at, reason }: { readonly at: number; readonly reason: string }): boolean {
    const state = this.#rows.threads.find(thread);
    const known = state === undefined ? undefined : this.#rows.runs.find(state.key, id);
    const row = known?.status === "queued" ? this.#reader.runs.get(known.key) : undefined;
    if (state === undefined || known === undefined || row === undefined) return false;
    const { more } = toRunPayload(this.#reader.ciphers.get(thread), { ...row, reason });
    this.#rows.runs.cancelQueued(known.key, at, more);
    this.#rows.runs.refreshTurn(state.key, known.branch);
    this.#rows.threads.countQueued(state.key, -1);
    return true;
  }
}
