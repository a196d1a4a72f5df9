/** Pages of lists with sealed cursors. */
import type { CallerScope } from "./caller-scope.ts";
import type { Page, PageOptions } from "./caller-service.ts";
import type { Cursors } from "./cursors.ts";
import { createInvalidRequestProblem } from "./service-problems.ts";

const defaultLimit = 50;
const maxLimit = 200;

/** Rows of a list after a place, in order. */
export type LoadRows<Row> = (page: {
  readonly before: string | undefined;
  readonly limit: number;
}) => Promise<readonly Row[]>;

/** List of a caller: its rows, and how they are shown. */
export interface PagedList<Row, Item> {
  /** Name of the list, and what it is about: a cursor of another list is refused. */
  readonly name: string;
  readonly load: LoadRows<Row>;
  readonly getCursor: (row: Row) => string;
  /** Rows that the caller may not see are left out. Default: all are shown. */
  readonly isShown?: (row: Row) => boolean;
  readonly toItem: (row: Row) => Item | Promise<Item>;
}

/** Loads a page. Throws the problem `invalid_request` for a limit or a cursor that does not fit. */
export async function loadPage<Row, Item>(
  { scope, cursors }: { readonly scope: CallerScope; readonly cursors: Cursors },
  { before, limit = defaultLimit }: PageOptions,
  list: PagedList<Row, Item>,
): Promise<Page<Item>> {
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit)
    throw createInvalidRequestProblem(`limit: expected an integer from 1 to ${maxLimit}, got ${limit}.`);
  const place = { party: scope.party, list: list.name };
  const rows: Row[] = [];
  let cursor = before === undefined ? undefined : await cursors.open(place, before);
  for (let isLast = false; !isLast && rows.length <= limit; ) {
    const loaded = await list.load({ before: cursor, limit: limit + 1 });
    const last = loaded.at(-1);
    isLast = last === undefined || loaded.length <= limit;
    if (last !== undefined) cursor = list.getCursor(last);
    rows.push(...loaded.filter((row) => list.isShown?.(row) ?? true));
  }
  const shown = rows.slice(0, limit);
  const end = shown.at(-1);
  const data = await Promise.all(shown.map((row) => list.toItem(row)));
  if (rows.length <= limit || end === undefined) return { data };
  return { data, next: await cursors.seal(place, list.getCursor(end)) };
}
