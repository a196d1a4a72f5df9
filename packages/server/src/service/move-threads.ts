/** Moves threads between stores, and compares their checkpoints. */
import type { JsonPatchOp } from "@statewright/core/inspect";
import type { ThreadView } from "./caller-service.ts";

/** Acts on whole threads. */
export interface MoveActs {
  /** Exports a thread in chunks of text, private channels included. Needs the scope `admin`. */
  exportThread(thread: string): Promise<AsyncIterable<string>>;
  /**
   * Imports a thread from its export as a thread of this tenant and caller. Needs the scope `admin`. Throws
   * `invalid_export`, `store_newer`, `thread_exists`.
   */
  importThread(
    text: AsyncIterable<string>,
    options: { readonly id?: string | undefined; readonly maxBytes: number },
  ): Promise<ThreadView>;
  /** Operations that turn the state at `from` into the state at `to`, without private channels. */
  diffStates(
    thread: string,
    checkpoints: { readonly from: number; readonly to: number },
  ): Promise<readonly JsonPatchOp[]>;
}
