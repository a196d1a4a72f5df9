/** Runs of an act: those of a filter whose status the act can change. */
import { invalidOption } from "../../base/invalid-option.ts";
import { isPlainObject } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import type { RunRow, RunStatus } from "../../checkpoint/checkpoint.ts";
import { parseCursor, toCursor } from "../../checkpoint/cursor.ts";
import { checkRunFilter, runFilterKeys } from "../../checkpoint/rules.ts";
import type { ListedRunRow, RunFilter, Store } from "../../checkpoint/store.ts";
import type { Act } from "./act.ts";

/** Filter of the runs of an act: that of `listRuns` without its page. An undefined value is refused. */
export type ActRunFilter = Omit<RunFilter, "before" | "order" | "limit">;

const pageKeys: readonly string[] = ["before", "order", "limit"];

/** Throws `invalid_option` for a missing or invalid filter, and for a status that the act cannot change. */
export function checkActFilter(where: string, filter: ActRunFilter, statuses: readonly RunStatus[]): void {
  if (!isPlainObject(filter))
    throw invalidOption({
      ...{ where, option: "filter", expected: "a filter of runs", got: filter },
      fix: "Pass a filter of listRuns; {} matches all runs",
    });
  checkOptions(
    `${where}.filter`,
    filter,
    runFilterKeys.filter((key) => !pageKeys.includes(key)),
  );
  checkFilterValues(`${where}.filter`, filter);
  for (const status of checkRunFilter(filter, `${where}.filter`) ?? [])
    if (!statuses.includes(status))
      throw invalidOption({
        ...{ where: `${where}.filter`, option: "status", got: status },
        expected: statuses.map((each) => JSON.stringify(each)).join(" or "),
      });
}

/**
 * Throws `invalid_option` for an option of a filter that is undefined: the act would reach the rows of all values, for
 * example of all tenants.
 */
export function checkFilterValues(where: string, filter: object): void {
  for (const [option, value] of Object.entries(filter))
    if (value === undefined)
      throw invalidOption({
        ...{ where, option, expected: "a value", got: value },
        fix: "Pass the value, or remove the option to act on the rows of all values",
      });
}

/** Creates the list of an act on runs. `defaults` are the statuses of a filter without a status. */
export function createRunList(
  store: Store,
  filter: ActRunFilter,
  { where, defaults }: { readonly where: string; readonly defaults: readonly RunStatus[] },
): Pick<Act<ListedRunRow>, "count" | "list" | "getCursor" | "getRun"> {
  const { status = defaults, ...rest } = filter;
  return {
    count: async () => {
      const { byStatus } = await store.countRuns(rest);
      const statuses: readonly RunStatus[] = Array.isArray(status) ? status : [status];
      return [...new Set(statuses)].reduce((sum, each) => sum + byStatus[each], 0);
    },
    list: (cursor, limit) => {
      const before = cursor === undefined ? {} : { before: { position: parsePosition(where, cursor) } };
      return store.runs({ ...rest, status, ...before, limit });
    },
    getCursor: ({ id, position }) => toCursor("listRuns", [id, position]),
    getRun: ({ id }) => id,
  };
}

function parsePosition(where: string, cursor: string): number {
  const [, position] = parseCursor("listRuns", cursor, { where, option: "cursor" });
  return position;
}

/** Finds the newest started run of the branch of a run. Only this run can be resumed. */
export async function findNewestRun(
  store: Store,
  { thread, branch }: Pick<RunRow, "thread" | "branch">,
): Promise<RunRow | undefined> {
  const [newest] = await store.runs({ thread, branch, status: startedStatuses, limit: 1 });
  return newest;
}

const startedStatuses: readonly RunStatus[] = [
  "running",
  "waiting",
  "paused",
  "parked",
  "done",
  "failed",
  "cancelled",
  "crashed",
];
