/** Requests of runs: added by any process, handled by commits. */
import {
  type Commit,
  type RunRequestOutcome,
  type RunRequestWrite,
  type RunRow,
  requestRules,
  storeRules,
} from "@statewright/core/store";
import type { Reader } from "../read/reader.ts";
import type { ThreadState } from "../rows/thread-rows.ts";
import type { ClaimedThread } from "./claimed-thread.ts";
import type { Queue } from "./queue.ts";
import type { WriterRows } from "./writer-rows.ts";

/** Run that a request is about, with its row keys. */
interface Target {
  readonly key: number;
  readonly branch: number;
  readonly row: RunRow;
}

/** Adds and handles requests; call inside a transaction. */
export class Requests {
  readonly #rows: WriterRows;
  readonly #reader: Reader;
  readonly #queue: Queue;

  constructor(rows: WriterRows, { reader, queue }: { readonly reader: Reader; readonly queue: Queue }) {
    this.#rows = rows;
    this.#reader = reader;
    this.#queue = queue;
  }

  /** Adds a request of a run. */
  add(write: RunRequestWrite): RunRequestOutcome {
    const state = this.#rows.threads.get(write.thread);
    const thread = { id: write.thread, cipher: this.#reader.ciphers.get(write.thread) };
    const known = write.key === undefined ? undefined : this.#rows.requests.findByKey(thread, write.key);
    if (known !== undefined)
      return { run: this.#getRun(write.thread, state, known.run).row, request: known, isNew: false };
    const target = this.#findTarget(write, state);
    const { row } = target;
    const open = state.requests === 0 ? [] : this.#rows.requests.list(thread).filter(({ run }) => run === row.id);
    const decision = requestRules.decideRequest(write, row, open);
    const keys = { branch: target.branch, run: target.key };
    if (decision.kind === "add") {
      const request = requestRules.toRunRequest(write, row);
      this.#rows.requests.insert(thread.cipher, request, keys);
      this.#rows.threads.addInput(state.key, "requests", 1);
      return { run: row, request, isNew: true };
    }
    if (write.key !== undefined)
      this.#rows.requests.insert(thread.cipher, requestRules.toRunRequest(write, row, true), keys);
    if (decision.kind === "nothing") return { run: row, request: decision.first, isNew: false };
    this.#queue.dequeue(write.thread, row.id, { at: write.at, reason: write.reason ?? "" });
    return { run: this.#getRun(write.thread, state, row.id).row, isNew: true };
  }

  /** Handles the requests that a commit names, and those of a run that it ends. */
  handle(claimed: ClaimedThread, commit: Commit): void {
    const count = this.#rows.requests.handle(claimed, (request) => requestRules.isHandledBy(commit, request));
    if (count === 0) return;
    // With a queue, other processes hear that the next run can start.
    if (commit.handledRequests !== undefined && claimed.queued > 0) {
      this.#rows.threads.addInput(claimed.key, "requests", -count);
      claimed.input = -1;
    } else this.#rows.threads.countOwn(claimed.key, "requests", -count);
    claimed.requests -= count;
  }

  #findTarget({ thread, branch, run }: RunRequestWrite, state: ThreadState): Target {
    if (run !== undefined) return this.#getRun(thread, state, run);
    const namespace = this.#reader.namespaces.find(thread, branch);
    if (namespace === undefined || storeRules.isChildNamespace(namespace.name))
      throw storeRules.createUnknownBranchError(thread, branch ?? state.head);
    const newest = namespace.run === null ? undefined : this.#reader.runs.get(namespace.run);
    if (newest !== undefined && storeRules.isUnfinishedRun(newest)) return this.#getRun(thread, state, newest.id);
    const queue = {
      thread,
      branch: namespace.name,
      status: "queued",
      delayed: "exclude",
      order: "oldest",
      limit: 1,
    } as const;
    const found = this.#reader.runs.list(queue, ["queued"], [])[0] ?? newest;
    if (found === undefined) throw requestRules.createUnknownRunError(thread, undefined);
    return this.#getRun(thread, state, found.id);
  }

  #getRun(thread: string, { key }: ThreadState, id: string): Target {
    const known = this.#rows.runs.find(key, id);
    const row = known === undefined ? undefined : this.#reader.runs.get(known.key);
    if (known === undefined || row === undefined) throw requestRules.createUnknownRunError(thread, id);
    return { key: known.key, branch: known.branch, row };
  }
}
