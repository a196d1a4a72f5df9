/**
 * Deletion of threads. A thread with few artifacts is deleted in one step. Otherwise the store claims the thread, so
 * that no other process runs it meanwhile, and deletes its artifacts in steps, between which other writes run.
 */
import { storeRules } from "@statewright/core/store";
import type { ThreadRows } from "../rows/thread-rows.ts";
import type { Eraser } from "../rows/thread-tables.ts";
import type { Artifacts } from "./artifacts.ts";

/** Deletion that needs several steps. */
export interface LargeDeletion {
  /** Deletes a part; throws `fenced` if the thread was deleted or claimed meanwhile. */
  readonly steps: readonly (() => void)[];
  /** Releases the thread after a failed step. */
  readonly release: () => void;
}

/** Deletes threads; call inside a transaction. */
export class ThreadDeletion {
  readonly #threads: ThreadRows;
  readonly #eraser: Eraser;
  readonly #artifacts: Artifacts;

  constructor(parts: { readonly threads: ThreadRows; readonly eraser: Eraser; readonly artifacts: Artifacts }) {
    this.#threads = parts.threads;
    this.#eraser = parts.eraser;
    this.#artifacts = parts.artifacts;
  }

  /**
   * Deletes a thread without a live owner, or claims a large one and returns the further steps. A thread with the epoch
   * `releasedEpoch` counts as released.
   */
  begin(thread: string, releasedEpoch: number | undefined, at: number): LargeDeletion | undefined {
    const state = this.#threads.get(thread);
    this.#threads.refuseLiveOwner(thread, state, releasedEpoch);
    const removals = this.#artifacts.planRemoval(thread, at);
    if (removals.length < 2) {
      if (this.#artifacts.hasOutsideBodies()) for (const remove of removals) remove();
      this.#eraser.eraseThread(state.key);
      return undefined;
    }
    const epoch = this.#threads.claimRow(state.key, at);
    const runOwned = (run: () => void): void => {
      const current = this.#threads.find(thread);
      if (current?.key !== state.key || current.epoch !== epoch)
        throw storeRules.createFencedError({ thread, branch: state.head, epoch, seq: state.seq });
      run();
    };
    return {
      steps: [...removals, () => this.#eraser.eraseThread(state.key)].map((run) => () => runOwned(run)),
      release: () => this.#threads.release({ key: state.key, epoch }),
    };
  }
}
