/** Acts that list open interrupts over the threads of a caller. */
import { listInterrupts, type WaitingInterrupt } from "@statewright/core";
import type { CallerScope } from "./caller-scope.ts";
import type { CallerService, WaitingView } from "./caller-service.ts";
import type { Cursors } from "./cursors.ts";
import { omitUndefined } from "./omit-undefined.ts";
import { loadPage } from "./pages.ts";

/** Creates the acts that list the open interrupts of a caller. */
export function createInterruptActs(scope: CallerScope, cursors: Cursors): Pick<CallerService, "listInterrupts"> {
  const { store, world, codec, columns } = scope;
  return {
    listInterrupts: async ({ thread, graph, ...page }) => {
      const own = thread === undefined ? undefined : await scope.requireThread(thread, { action: "thread.read" });
      if (own === undefined) await scope.ask({ action: "thread.read", graph });
      const filter = { ...columns, world, codec, ...omitUndefined({ thread: own?.stored, graph }) };
      return await loadPage({ scope, cursors }, page, {
        name: `interrupts ${own?.stored ?? ""}`,
        load: ({ before, limit }) => listInterrupts(store, { ...filter, limit, ...omitUndefined({ before }) }),
        getCursor: ({ cursor }) => cursor,
        isShown: (row) =>
          scope.isVisible({
            ...columns,
            tenant: scope.caller.tenant,
            owner: scope.caller.id,
            id: row.thread,
            graph: row.graph,
          }),
        toItem: (row) => toWaitingView(scope, row),
      });
    },
  };
}

/** Returns an open interrupt as its caller sees it. */
export function toWaitingView(scope: CallerScope, waiting: WaitingInterrupt): WaitingView {
  const { thread, branch, run, graph, raisedAt, position: _, cursor: __, ...interrupt } = waiting;
  return { thread: scope.toWireId(thread), branch, run, graph, raisedAt, interrupt };
}
