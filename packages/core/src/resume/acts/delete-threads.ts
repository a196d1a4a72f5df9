/** `bulk.deleteThreads`: deletes many threads by a filter. */
import { isStatewrightError } from "../../base/errors.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { isPlainObject } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import type { RunStatus } from "../../checkpoint/checkpoint.ts";
import { parseCursor, toCursor } from "../../checkpoint/cursor.ts";
import { checkThreadFilter, threadFilterKeys } from "../../checkpoint/rules.ts";
import type { Store, ThreadFilter, ThreadRow } from "../../checkpoint/store.ts";
import { checkStoreOption } from "../../run/session/options/check-run-options.ts";
import { type ActReport, actNames, type BulkOptions, checkBulkOptions, performAct } from "./act.ts";
import { checkFilterValues } from "./run-list.ts";

/** Filter of the threads of an act: that of `listThreads` without its page. An undefined value is refused. */
export type ActThreadFilter = Omit<ThreadFilter, "before" | "limit">;

/** Options of `bulk.deleteThreads`. */
export interface DeleteThreadsOptions extends BulkOptions {
  /** Threads to delete, as in `listThreads`; `{}` for all threads. */
  readonly filter: ActThreadFilter;
}

const where = "bulk.deleteThreads";

type ThreadItem = Pick<ThreadRow, "updatedAt"> & { readonly thread: string };

/**
 * Deletes the threads of a filter with all their rows, the most recently changed first. A thread that changed after
 * the call is not deleted; one that a living process runs is in `errors` (`thread_busy`). After a kill, a call with the
 * same filter, or with the `cursor` of the last progress, continues. Throws `invalid_option`, and errors of the store.
 *
 * @example
 * ```ts
 * const { matched } = await bulk.deleteThreads(store, { filter: { tenant: "acme" }, dryRun: true });
 * const { done, errors } = await bulk.deleteThreads(store, { filter: { tenant: "acme" } });
 * ```
 */
export async function deleteThreads(store: Store, options: DeleteThreadsOptions): Promise<ActReport> {
  checkStoreOption(where, store ?? null);
  checkOptions(where, options, [...actNames, "filter"]);
  checkBulkOptions(where, options);
  const { filter } = options;
  checkFilter(filter);
  return await performAct<ThreadItem>(
    {
      count: () => countThreads(store, filter),
      list: async (cursor, limit) => {
        const before = cursor === undefined ? {} : { before: parsePlace(cursor) };
        const rows = await store.threads({ ...filter, ...before, limit });
        return rows.map(({ id: thread, updatedAt }) => ({ thread, updatedAt }));
      },
      getCursor: ({ thread, updatedAt }) => toCursor("listThreads", [updatedAt, thread]),
      getRun: () => undefined,
      apply: (row) => deleteUnchanged(store, row),
    },
    options,
  );
}

function checkFilter(filter: ActThreadFilter): void {
  if (!isPlainObject(filter))
    throw invalidOption({
      ...{ where, option: "filter", expected: "a filter of threads", got: filter },
      fix: "Pass a filter of listThreads; {} matches all threads",
    });
  checkOptions(
    `${where}.filter`,
    filter,
    threadFilterKeys.filter((key) => key !== "before"),
  );
  checkFilterValues(`${where}.filter`, filter);
  checkThreadFilter(filter, `${where}.filter`);
}

async function countThreads(store: Store, { status, ...filter }: ActThreadFilter): Promise<number> {
  const { total, byStatus } = await store.countThreads(filter);
  if (status === undefined) return total;
  const statuses: readonly RunStatus[] = Array.isArray(status) ? status : [status];
  return [...new Set(statuses)].reduce((sum, each) => sum + byStatus[each], 0);
}

function parsePlace(cursor: string): Pick<ThreadRow, "id" | "updatedAt"> {
  const [updatedAt, id] = parseCursor("listThreads", cursor, { where, option: "cursor" });
  return { id, updatedAt };
}

async function deleteUnchanged(store: Store, { thread, updatedAt }: ThreadItem): Promise<"done" | "skipped"> {
  if ((await store.thread(thread))?.updatedAt !== updatedAt) return "skipped";
  try {
    await store.delete(thread);
    return "done";
  } catch (error) {
    if (isStatewrightError(error, "unknown_thread")) return "skipped";
    throw error;
  }
}
