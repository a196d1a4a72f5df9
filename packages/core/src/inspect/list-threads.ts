/** Lists and counts threads and runs. */
import { checkId } from "../base/ids.ts";
import { checkOptions } from "../base/options.ts";
import type { Redact } from "../base/redaction/redact-patterns.ts";
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
import { createTextRedactor } from "./read/read-redactor.ts";

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
  /**
   * Texts and patterns to redact in titles and metadata, as in the readers of a thread. Default: rows are shown as saved.
   */
  readonly redact?: readonly (string | RegExp)[];
}

/** Filter of `listRuns`. */
export interface ListRunsOptions extends Omit<RunFilter, "before"> {
  /** Last row of the previous page, or the `cursor` of that row. */
  readonly before?: string | Pick<ListedRunRow, "position"> | undefined;
  /**
   * Texts and patterns to redact in metadata, inputs, errors and reasons, as in the readers of a thread. Default: rows are shown as saved.
   */
  readonly redact?: readonly (string | RegExp)[];
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
  const redact = createTextRedactor("listThreads", filter?.redact);
  const rows = await store.threads(toThreadFilter(filter));
  return rows.map((row) => ({
    ...redactThread(redact, row),
    cursor: toCursor("listThreads", [row.updatedAt, row.id]),
  }));
}

/** Redacts what a caller of the run wrote: title and metadata. */
export function redactThread<Row extends ThreadRow>(redact: Redact, row: Row): Row {
  const { title, metadata } = row;
  return {
    ...row,
    ...(title === undefined ? {} : { title: redact(title) }),
    ...(metadata === undefined ? {} : { metadata: redact(metadata) }),
  };
}

/** Redacts what a caller, a node or a tool wrote into the row of a run. */
function redactRun<Row extends RunRow>(redact: Redact, row: Row): Row {
  const { error, reason, metadata, input } = row;
  return {
    ...row,
    ...(error === undefined ? {} : { error: redact(error) }),
    ...(reason === undefined ? {} : { reason: redact(reason) }),
    ...(metadata === undefined ? {} : { metadata: redact(metadata) }),
    ...(input === undefined ? {} : { input: redact(input) }),
  };
}

/** Returns the filter of the store: a text cursor becomes the place of its row. */
function toThreadFilter(options: ListThreadsOptions): ThreadFilter {
  checkOptions("listThreads", options, [...threadFilterKeys, "limit", "redact"]);
  const { before, redact: _redact, ...filter } = options;
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
  const redact = createTextRedactor("listRuns", filter?.redact);
  const rows = await store.runs(toRunFilter(filter));
  return rows.map((row) => ({ ...redactRun(redact, row), cursor: toCursor("listRuns", [row.id, row.position]) }));
}

function toRunFilter(options: ListRunsOptions): RunFilter {
  checkOptions("listRuns", options, [...runFilterKeys, "limit", "redact"]);
  const { before, redact: _redact, ...filter } = options;
  if (typeof before !== "string") return before === undefined ? filter : { ...filter, before };
  const [, position] = parseCursor("listRuns", before);
  return { ...filter, before: { position } };
}

/**
 * Returns a run by its id, over all threads, or undefined for an unknown id. A copy or an import of a thread repeats the
 * ids of its runs: the result is then the run that the store has known longest, and after its deletion the run of the
 * copy. `redact` is the option of `listRuns`. Throws `invalid_id`, `invalid_option`.
 */
export async function getRun(
  store: Store,
  id: string,
  options: Pick<ListRunsOptions, "redact"> = {},
): Promise<RunRow | undefined> {
  checkStoreOption("getRun", store ?? null);
  checkOptions("getRun", options, ["redact"]);
  const redact = createTextRedactor("getRun", options.redact);
  const row = await store.run(checkId("run", id));
  return row === undefined ? undefined : redactRun(redact, row);
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
