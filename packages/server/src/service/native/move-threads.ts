/** Moves threads between stores, and compares their checkpoints. */
import { StatewrightError } from "@statewright/core";
import { diffStates, importThread, type JsonPatchOp, streamThreadExport } from "@statewright/core/inspect";
import type { CallerScope, OwnThread } from "../caller-scope.ts";
import type { ThreadView } from "../caller-service.ts";
import { createUnknownThreadError } from "../thread-ids.ts";
import { toThreadView } from "../views.ts";

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

/** Creates the acts on whole threads of a caller. */
export function createMoveActs(scope: CallerScope): MoveActs {
  const { store, caller, codec } = scope;
  return {
    exportThread: async (thread) => {
      const { stored } = await scope.requireThread(thread, { action: "admin" });
      return streamThreadExport(store, stored, { as: thread });
    },
    importThread: async (text, { id, maxBytes }) => {
      await scope.ask({ action: "admin", thread: id, changes: true });
      const as = (exported: string): string => scope.toStoredId(id ?? exported);
      const stored = await importThread(store, text, { as, maxBytes, tenant: caller.tenant, owner: caller.id });
      const row = await store.thread(stored);
      if (row === undefined) throw createUnknownThreadError(scope.toWireId(stored));
      return toThreadView(scope, row);
    },
    diffStates: async (thread, checkpoints) => {
      const own = await scope.requireThread(thread, { action: "thread.read" });
      for (const at of [checkpoints.from, checkpoints.to]) await checkOutermost(scope, own, at);
      const operations = await diffStates(store, { thread: own.stored, codec, ...checkpoints });
      const graph = own.row.graph === undefined ? undefined : scope.requireGraph(own.row.graph);
      return operations.filter(({ path }) => graph !== undefined && !graph.private.has(getChannel(path)));
    },
  };
}

/** Throws `unknown_checkpoint` for a checkpoint of an inner graph, whose private channels this graph does not know. */
async function checkOutermost({ store }: CallerScope, { stored, wire }: OwnThread, at: number): Promise<void> {
  const row = await store.checkpoint(stored, at);
  if (row !== undefined && !row.branch.includes("/")) return;
  throw new StatewrightError("unknown_checkpoint", {
    what: `the thread "${wire}" has no checkpoint ${at} of its outermost graph`,
    next: "Use a checkpoint of the history",
    place: { thread: wire },
  });
}

/** Returns the channel of a JSON pointer: a name without characters that a pointer escapes. */
function getChannel(path: string): string {
  return path.split("/", 2)[1] ?? "";
}
