/** Acts on threads as rows. */
import { isStatewrightError, StatewrightError } from "@statewright/core";
import { createId } from "@statewright/core/adapter";
import {
  copyThread,
  countThreads,
  createThread,
  deleteThread,
  type ListedThread,
  listThreads,
  pruneThread,
  updateThread,
} from "@statewright/core/inspect";
import type { ThreadCountFilter } from "@statewright/core/store";
import type { CallerScope } from "./caller-scope.ts";
import type { CallerService, ThreadQuery } from "./caller-service.ts";
import type { Cursors } from "./cursors.ts";
import { omitUndefined } from "./omit-undefined.ts";
import { loadPage } from "./pages.ts";
import { checkWireId, createUnknownThreadError } from "./thread-ids.ts";
import { toThreadView } from "./views.ts";

type ThreadActs =
  | "listThreads"
  | "countThreads"
  | "createThread"
  | "getThread"
  | "updateThread"
  | "deleteThread"
  | "copyThread"
  | "pruneThread";

/** Creates the acts on threads of a caller. */
export function createThreadActs(scope: CallerScope, cursors: Cursors): Pick<CallerService, ThreadActs> {
  const { store, world, codec } = scope;
  return {
    listThreads: async ({ before, limit, ...query }) => {
      await scope.ask({ action: "thread.read", graph: query.graph });
      return await loadPage(
        { scope, cursors },
        { before, limit },
        {
          name: "threads",
          load: (page) => listMatching(scope, query, page),
          getCursor: ({ cursor }) => cursor,
          isShown: (row) => scope.isVisible(row),
          toItem: (row) => toThreadView(scope, row),
        },
      );
    },
    countThreads: async (query) => {
      await scope.ask({ action: "thread.read", graph: query.graph });
      return await countMatching(scope, query);
    },
    createThread: (write) => createOwnThread(scope, write),
    getThread: async (thread) => {
      const { row } = await scope.requireThread(thread, { action: "thread.read" });
      return toThreadView(scope, row);
    },
    updateThread: async (thread, { title, metadata }) => {
      const { stored, row } = await scope.requireThread(thread, { action: "thread.write", changes: true });
      if (title === undefined && metadata === undefined) return toThreadView(scope, row);
      return toThreadView(scope, await updateThread(store, stored, { ...omitUndefined({ title, metadata }), world }));
    },
    deleteThread: async (thread) => {
      const { stored } = await scope.requireThread(thread, { action: "thread.delete", changes: true });
      await deleteThread(store, stored);
    },
    copyThread: async (thread, to = createId("thread_", world.random)) => {
      await scope.ask({ action: "thread.write", thread: to, changes: true });
      const { stored } = await scope.requireThread(thread, { action: "thread.read" });
      await checkIsIdle(scope, thread);
      await copyThread(store, stored, scope.toStoredId(to));
      const { row } = await scope.requireThread(to, { action: "thread.read" });
      return toThreadView(scope, row);
    },
    pruneThread: async (thread, { latest }) => {
      const { stored } = await scope.requireThread(thread, { action: "thread.delete", changes: true });
      return (await pruneThread(store, { thread: stored, keepLast: latest, world, codec })).checkpoints;
    },
  };
}

/** Throws `thread_busy` for a thread with a run at work or queued: an engine would continue the run in the copy, too. */
async function checkIsIdle(scope: CallerScope, thread: string): Promise<void> {
  const [run] = await scope.store.runs({
    thread: scope.toStoredId(thread),
    status: ["queued", "running", "crashed"],
    limit: 1,
  });
  if (run === undefined) return;
  throw new StatewrightError("thread_busy", {
    what: `the thread "${thread}" has a run that is ${run.status}`,
    next: "Copy the thread when the run rests or has ended",
    place: { thread },
    details: { run: run.id, status: run.status },
  });
}

type NewThread = Parameters<CallerService["createThread"]>[0];

/** Creates a thread. Of several calls with one id and `keep`, one creates it. */
async function createOwnThread(
  scope: CallerScope,
  { id, title, metadata, ifExists = "throw" }: NewThread,
): ReturnType<CallerService["createThread"]> {
  const { store, world, caller } = scope;
  const thread = id === undefined ? createId("thread_", world.random) : checkWireId("thread", id);
  await scope.ask({ action: "thread.write", thread, changes: true });
  const stored = scope.toStoredId(thread);
  const known = await store.thread(stored);
  if (known !== undefined && !scope.isVisible(known)) throw createUnknownThreadError(thread);
  const write = { ...omitUndefined({ title, metadata }), tenant: caller.tenant, owner: caller.id };
  try {
    const row = await createThread(store, { ...write, thread: stored, world });
    return { thread: toThreadView(scope, row), isNew: true };
  } catch (error) {
    const existing = isStatewrightError(error, "thread_exists") ? await store.thread(stored) : undefined;
    if (ifExists !== "keep" || existing === undefined) throw error;
    return { thread: toThreadView(scope, existing), isNew: false };
  }
}

type ThreadFilterQuery = Omit<ThreadQuery, "before" | "limit">;

/** Filters of the store for a query: a search text is the start of an id, or a value. */
function toFilters(scope: CallerScope, { graph, metadata, search }: ThreadFilterQuery): readonly ThreadCountFilter[] {
  const filter = { ...scope.columns, ...omitUndefined({ graph, metadata }) };
  if (search === undefined) return [filter];
  return [scope.party + search, search].map((text) => ({ ...filter, search: text }));
}

/** Lists the threads that match any filter of a query, most recently changed first. */
async function listMatching(
  scope: CallerScope,
  query: ThreadFilterQuery,
  { before, limit }: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly ListedThread[]> {
  const page = { limit, ...omitUndefined({ before, status: query.status }) };
  const lists = await Promise.all(
    toFilters(scope, query).map((filter) => listThreads(scope.store, { ...filter, ...page })),
  );
  const [first = [], ...others] = lists;
  if (others.length === 0) return first;
  const known = new Set(first.map(({ id }) => id));
  const added = others.flat().filter(({ id }) => !known.has(id));
  return [...first, ...added].sort((one, other) => other.updatedAt - one.updatedAt).slice(0, limit);
}

/** Counts the visible threads that match a query. A search, a status and hidden graphs are counted row by row. */
async function countMatching(scope: CallerScope, query: ThreadFilterQuery): Promise<number> {
  const [filter, ...others] = toFilters(scope, query);
  const hidesGraphs = scope.engine.graphs.some(({ name }) => !scope.isExposed(name));
  if (others.length === 0 && query.status === undefined && !hidesGraphs)
    return (await countThreads(scope.store, filter ?? {})).total;
  let total = 0;
  for (let before: string | undefined; ; ) {
    const rows = await listMatching(scope, query, { before, limit: countPageSize });
    total += rows.filter((row) => scope.isVisible(row)).length;
    before = rows.at(-1)?.cursor;
    if (rows.length < countPageSize) return total;
  }
}

const countPageSize = 200;
