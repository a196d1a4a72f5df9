/** Forks: branches that start from a checkpoint. */

import { type BranchWrite, type CheckpointRow, type InterruptRow, storeRules } from "@statewright/core/store";
import type { CheckpointColumns } from "@statewright/store-kit";
import type { Reader } from "../read/reader.ts";
import type { ThreadState } from "../rows/thread-rows.ts";
import type { WriterRows } from "./writer-rows.ts";

/** Namespace of a fork, with its interrupts; `nth` is the number of its checkpoint among the new ones. */
interface NewNamespace {
  readonly fork: storeRules.ForkedNamespace<CheckpointColumns>;
  readonly nth: number;
  readonly interrupts: readonly InterruptRow[];
}

/** Creates branches; call inside a transaction. */
export class Forks {
  readonly #rows: WriterRows;
  readonly #reader: Reader;

  constructor(rows: WriterRows, reader: Reader) {
    this.#rows = rows;
    this.#reader = reader;
  }

  /** Creates a branch of a thread without a live owner; a thread with the epoch `releasedEpoch` counts as released. */
  create(write: BranchWrite, releasedEpoch: number | undefined): CheckpointRow {
    const { thread } = write;
    const found = this.#rows.threads.get(thread);
    this.#rows.threads.refuseLiveOwner(thread, found, releasedEpoch);
    const state = this.#rows.threads.updateStoredHead(thread, found);
    const [outer, ...inner] = storeRules.resolveForkedNamespaces(write, {
      origin: (from) => this.#reader.checkpoints.find(thread, from),
      has: (namespace) => this.#reader.namespaces.find(thread, namespace) !== undefined,
    });
    const row = this.#createNamespace(thread, state, { fork: outer, nth: 1, interrupts: write.interrupts });
    inner.forEach((fork, index) => {
      this.#createNamespace(thread, state, { fork, nth: index + 2, interrupts: [] });
    });
    if (write.head === true) this.#rows.threads.moveHead(state.key, write.branch);
    return row;
  }

  /** Creates a namespace with its first checkpoint. */
  #createNamespace(
    thread: string,
    { key, seq, checkpoint: last }: ThreadState,
    { fork, nth, interrupts }: NewNamespace,
  ): CheckpointRow {
    const { namespace: name, from, origin, checkpoint } = fork;
    const writer = this.#rows.graphs.getWriter(origin);
    const row = { ...checkpoint.row, id: last + nth, branch: name, parent: from, seq: seq + nth };
    const state = this.#rows.namespaces.create(key, name, origin);
    const cipher = this.#reader.ciphers.get(thread);
    const written = { id: thread, key, writer, run: undefined, cipher };
    this.#rows.checkpoints.write(written, state, { row, deltas: checkpoint.deltas });
    for (const interrupt of interrupts) this.#rows.interrupts.write(cipher, state, interrupt);
    this.#rows.threads.advance(key, { seq: row.seq, checkpoint: row.id, updated: row.at });
    return row;
  }
}
