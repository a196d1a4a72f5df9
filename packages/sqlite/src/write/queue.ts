/** Queue of runs. */

import { isStatewrightError } from "@statewright/core";
import { checkId } from "@statewright/core/adapter";
import { delayedRunRules, type QueueWrite, type RunRow, storeRules, threadRules } from "@statewright/core/store";
import { toRunPayload } from "@statewright/store-kit";
import type { NamespaceRow } from "../read/namespace-reader.ts";
import type { Reader } from "../read/reader.ts";
import { DelayedRuns, type DuePage } from "../schedules/delayed-runs.ts";
import type { WriterRows } from "./writer-rows.ts";

/** Enqueues and dequeues runs; call inside a transaction. */
export class Queue {
  readonly #rows: WriterRows;
  readonly #reader: Reader;
  readonly #delayed: DelayedRuns;

  constructor(rows: WriterRows, reader: Reader) {
    this.#rows = rows;
    this.#reader = reader;
    this.#delayed = new DelayedRuns(rows, reader);
  }

  /**
   * Enqueues a run; returns the existing run for a known idempotency key. A thread with the epoch `releasedEpoch`
   * counts as released.
   */
  enqueue(write: QueueWrite, releasedEpoch: number | undefined): RunRow {
    const { thread, branch, run, stops } = write;
    checkId("run", run.id);
    const replaced = write.debounce === undefined ? undefined : this.#delayed.replace(write, write.debounce);
    if (replaced !== undefined) return replaced;
    if (write.creates !== undefined && this.#rows.threads.find(thread) === undefined)
      this.#createThread(write, write.creates);
    const state = this.#rows.threads.get(thread);
    const namespace = this.#reader.namespaces.find(thread, branch);
    if (namespace === undefined || storeRules.isChildNamespace(namespace.name))
      throw storeRules.createUnknownBranchError(thread, branch ?? state.head);
    threadRules.checkTenant("run", { id: thread, tenant: state.tenant ?? undefined }, run.tenant);
    const known = run.key === undefined ? undefined : this.#reader.runs.findByKey(state.key, run.key);
    if (known !== undefined) return known;
    const isDelayed = delayedRunRules.isDelayed(run);
    if (write.mustBeIdle === true && !isDelayed) {
      this.#rows.threads.refuseLiveOwner(thread, state, releasedEpoch);
      this.#checkIdle(thread, namespace);
    }
    const newest =
      namespace.run === null || stops === undefined || isDelayed ? undefined : this.#reader.runs.get(namespace.run);
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
    if (isDelayed) this.#delayed.arm(namespace.key, row, write.debounce);
    else {
      this.#rows.runs.refreshTurn(state.key, namespace.key);
      this.#rows.threads.addInput(state.key, "queued", 1);
    }
    return row;
  }

  /** Moves the due delayed runs into their queues; `getReleasedEpoch` as for {@link enqueue}. */
  enqueueDue(page: DuePage, getReleasedEpoch: (thread: string) => number | undefined): readonly RunRow[] {
    const moved = this.#delayed.enqueueDue(page, (thread, branch) => {
      try {
        this.#rows.threads.refuseLiveOwner(thread, this.#rows.threads.get(thread), getReleasedEpoch(thread));
        this.#checkIdle(thread, branch);
        return false;
      } catch (error) {
        if (isStatewrightError(error, "thread_busy")) return true;
        throw error;
      }
    });
    for (const { status, thread, id } of moved) {
      const state = status === "cancelled" ? this.#rows.threads.get(thread) : undefined;
      if (state !== undefined && state.requests > 0) this.#dropRequests(thread, state.key, id);
    }
    return moved;
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
    const queue = { thread, branch: name, status: "queued", delayed: "exclude", order: "oldest", limit: 1 } as const;
    const [queued] = this.#reader.runs.list(queue, ["queued"], []);
    if (queued !== undefined) throw storeRules.createNotIdleError(queued);
  }

  #dropRequests(thread: string, key: number, run: string): void {
    const count = this.#rows.requests.handle(
      { id: thread, cipher: this.#reader.ciphers.get(thread) },
      (request) => request.run === run,
    );
    if (count > 0) this.#rows.threads.countOwn(key, "requests", -count);
  }

  /** Cancels a queued run; false if the run is not queued. */
  dequeue(thread: string, id: string, { at, reason }: { readonly at: number; readonly reason: string }): boolean {
    const state = this.#rows.threads.find(thread);
    const known = state === undefined ? undefined : this.#rows.runs.find(state.key, id);
    const isQueued = known?.status === "queued" || known?.status === "delayed";
    const row = isQueued ? this.#reader.runs.get(known.key) : undefined;
    if (state === undefined || known === undefined || row === undefined) return false;
    const { startAt: _, ...rest } = row;
    const { more } = toRunPayload(this.#reader.ciphers.get(thread), { ...rest, reason });
    this.#rows.runs.cancelQueued(known.key, at, more);
    this.#rows.runs.refreshTurn(state.key, known.branch);
    if (known.status === "queued") this.#rows.threads.addInput(state.key, "queued", -1);
    else this.#delayed.disarm(row);
    if (state.requests > 0) this.#dropRequests(thread, state.key, id);
    return true;
  }
}
