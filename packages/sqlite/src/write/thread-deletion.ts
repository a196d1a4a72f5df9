/** Deletion of threads, at once for all readers and in pieces in the file. */
import type { ThreadRows } from "../rows/thread-rows.ts";
import type { Eraser } from "../rows/thread-tables.ts";
import type { Artifacts } from "./artifacts.ts";
import type { RemovedThreads } from "./removed-threads.ts";

/** Deletes threads; call inside a transaction. */
export class ThreadDeletion {
  readonly #threads: ThreadRows;
  readonly #eraser: Eraser;
  readonly #artifacts: Artifacts;
  readonly #removed: RemovedThreads;

  constructor(parts: {
    readonly threads: ThreadRows;
    readonly eraser: Eraser;
    readonly artifacts: Artifacts;
    readonly removed: RemovedThreads;
  }) {
    this.#threads = parts.threads;
    this.#eraser = parts.eraser;
    this.#artifacts = parts.artifacts;
    this.#removed = parts.removed;
  }

  /**
   * Deletes a thread without a live owner. A thread with the epoch `releasedEpoch` counts as released. Returns true if
   * rows of deleted threads remain.
   */
  begin(thread: string, releasedEpoch: number | undefined, at: number): boolean {
    const state = this.#threads.get(thread);
    this.#threads.refuseLiveOwner(thread, state, releasedEpoch);
    this.#artifacts.releaseBodies(thread, at);
    this.#eraser.hideThread(state.key);
    this.#removed.begin(state.key, at);
    return this.#removed.hasAny();
  }

  /** Returns true if rows of deleted threads remain. */
  hasRemains(): boolean {
    return this.#removed.hasAny();
  }

  /** Deletes the next piece of the remaining rows. Returns true if rows remain. */
  removePiece(): boolean {
    return this.#removed.removePiece();
  }
}
