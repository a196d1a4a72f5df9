/** Lists and counts threads and runs. */
import { checkId } from "../base/ids.ts";
import { checkOptions } from "../base/options.ts";
import type { RunRow } from "../checkpoint/checkpoint.ts";
import { parseCursor, toCursor } from "../checkpoint/cursor.ts";
import { runFilterKeys, threadFilterKeys } from "../checkpoint/rules.ts";
import type {
  ListedRunRow,
  RunCountFilter,
  RunCounts,
  RunFilter,
  Store,
  ThreadCountFilter,
  ThreadCounts,
  ThreadFilter,
  ThreadRow,
} from "../checkpoint/store.ts";
import { checkStoreOption } from "../run/session/options/check-run-options.ts";

/** Row of a list with its cursor: the text to pass as `before` for the page after the row. */
export interface WithCursor {
  readonly cursor: string;
}

/** Thread in a list. */
export interface ListedThread extends ThreadRow, WithCursor {}

/** Run in a list. */
export interface ListedRun extends ListedRunRow, WithCursor {}

/** Filter of `listThreads`. */
export interface ListThreadsOptions extends Omit<ThreadFilter, "before"> {
  /** Last row of the previous page, or the `cursor` of that row. */
  readonly before?: string | Pick<ThreadRow, "id" | "updatedAt"> | undefined;
}

/** Filter of `listRuns`. */
export interface ListRunsOptions extends Omit<RunFilter, "before"> {
  /** Last row of the previous page, or the `cursor` of that row. */
  readonly before?: string | Pick<ListedRunRow, "position"> | undefined;
}

/**
 * Returns threads of a store, most recently changed first, page by page: pass the last row of a page, or its `cursor`,
 * as `before`. Throws `invalid_option` for an unknown filter or a foreign cursor.
 *
 * @example
 * ```ts
 * const page = await listThreads(store, { tenant: "acme", metadata: { project: "atlas" }, limit: 20 });
 * const next = await listThreads(store, { tenant: "acme", limit: 20, before: page.at(-1)?.cursor });
 * ```
 */
export async function listThreads(store: Store, filter: ListThreadsOptions = {}): Promise<readonly ListedThread[]> {
  checkStoreOption("listThreads", store ?? null);
  const rows = await store.threads(toThreadFilter(filter));
  return rows.map((row) => ({ ...row, cursor: toCursor("listThreads", [row.updatedAt, row.id]) }));
}

/** Returns the filter of the store: a text cursor becomes the place of its row. */
function toThreadFilter(options: ListThreadsOptions): ThreadFilter {
  checkOptions("listThreads", options, [...threadFilterKeys, "limit"]);
  const { before, ...filter } = options;
  if (typeof before !== "string") return before === undefined ? filter : { ...filter, before };
  const [updatedAt, id] = parseCursor("listThreads", before);
  return { ...filter, before: { id, updatedAt } };
}

/**
 * Returns runs of a store, newest first, page by page: pass the last row of a page, or its `cursor`, as `before`, also
 * after the row was deleted. Throws `invalid_option` for an unknown filter or a foreign cursor.
 */
export async function listRuns(store: Store, filter: ListRunsOptions = {}): Promise<readonly ListedRun[]> {
  checkStoreOption("listRuns", store ?? null);
  const rows = await store.runs(toRunFilter(filter));
  return rows.map((row) => ({ ...row, cursor: toCursor("listRuns", [row.id, row.position]) }));
}

function toRunFilter(options: ListRunsOptions): RunFilter {
  checkOptions("listRuns", options, [...runFilterKeys, "limit"]);
  const { before, ...filter } = options;
  if (typeof before !== "string") return before === undefined ? filter : { ...filter, before };
  const [, position] = parseCursor("listRuns", before);
  return { ...filter, before: { position } };
}

/**
 * Returns a run by its id, over all threads, or undefined for an unknown id. A copy or an import of a thread repeats the
 * ids of its runs: the result is then the run that the store has known longest, and after its deletion the run of the
 * copy. Throws `invalid_id`.
 */
export async function getRun(store: Store, id: string): Promise<RunRow | undefined> {
  checkStoreOption("getRun", store ?? null);
  return await store.run(checkId("run", id));
}

/**
 * Returns the number of threads that match a filter, by the status of their newest run. Without a filter, or by
 * `tenant` alone, the store reads only an index. Throws `invalid_option` for an unknown filter.
 *
 * @example
 * ```ts
 * const { total, byStatus } = await countThreads(store, { tenant: "acme" });
 * console.log(`${byStatus.waiting} of ${total} threads wait for an answer`);
 * ```
 */
export async function countThreads(store: Store, filter: ThreadCountFilter = {}): Promise<ThreadCounts> {
  checkStoreOption("countThreads", store ?? null);
  return await store.countThreads(filter);
}

/**
 * Returns the number of runs that match a filter, by status. Without a filter, or by `tenant` alone, the store reads
 * only an index. Throws `invalid_option` for an unknown filter.
 */
export async function countRuns(store: Store, filter: RunCountFilter = {}): Promise<RunCounts> {
  checkStoreOption("countRuns", store ?? null);
  return await store.countRuns(filter);
}
