/**
 * Filters of the lists of runs and threads. The cost of a page depends on its size only, not on the number of runs and
 * threads: queries read in the order of an index, and rare values are found by their own index.
 */

import type { RunStatus } from "@statewright/core";
import type { RunFilter, ThreadFilter } from "@statewright/core/store";
import { statusFromRow, toStoredStatuses } from "@statewright/store-kit";

/** Effective status of a run: `running` reads as `crashed` if the owner is dead or no longer owns the thread. */
export const effectiveStatus: string =
  "CASE WHEN r.status = 'running' AND (t.owner IS NULL OR r.epoch <> t.epoch OR t.owner IN (SELECT value FROM json_each(@dead)))" +
  " THEN 'crashed' ELSE " +
  statusFromRow +
  " END";

/**
 * Nearly all runs are done; the others have a partial index, which SQLite uses only for queries with this exact
 * condition.
 */
export const isNotDone: string = " AND r.status <> 'done'";

export const hasRequestedStatus: string =
  " AND (@statuses IS NULL OR " + effectiveStatus + " IN (SELECT value FROM json_each(@statuses)))";

/** Excludes delayed runs, unless the parameter is 1. */
export const isRequestedDelay: string = " AND (@delayed = 1 OR r.status <> 'delayed')";

/** The metadata of a run `r`. */
export const hasMetadata: string = hasEntries("r.metadata", "@metadata");

/** Condition that metadata, as JSON, has all entries of a parameter, unless the parameter is null. */
export function hasEntries(metadata: string, parameter: string): string {
  return (
    " AND (" +
    parameter +
    " IS NULL OR NOT EXISTS (SELECT 1 FROM json_each(" +
    parameter +
    ") w WHERE NOT EXISTS (SELECT 1 FROM json_each(coalesce(" +
    metadata +
    ", '{}')) h WHERE h.key = w.key AND h.type = w.type AND h.atom IS w.atom)))"
  );
}

/** Tenant and owner of rows `r` or `t`. */
export function hasParties(row: "r" | "t"): string {
  return " AND (@tenant IS NULL OR " + row + ".tenant = @tenant) AND (@user IS NULL OR " + row + ".user = @user)";
}

export interface ListParameters {
  readonly graph: string | null;
  readonly tenant: string | null;
  readonly user: string | null;
  readonly metadata: string | null;
  readonly statuses: string | null;
  readonly dead: string;
  readonly since: number;
  readonly until: number;
  readonly before: number;
  readonly limit: number;
}

/** Returns the stored statuses of a filter; undefined if the filter contains `done`, the status of nearly all runs. */
export function toStoredOpenStatuses(statuses: readonly RunStatus[] | undefined): readonly string[] | undefined {
  return statuses === undefined || statuses.includes("done") ? undefined : toStoredStatuses(statuses);
}

export function getTimeWindow({ since, until }: RunFilter | ThreadFilter): [since: number, until: number] {
  return [since ?? Number.MIN_SAFE_INTEGER, until ?? Number.MAX_SAFE_INTEGER];
}

export function toListParameters(
  filter: RunFilter | ThreadFilter,
  statuses: readonly RunStatus[] | undefined,
  dead: readonly number[],
): Omit<ListParameters, "before"> {
  const { graph, tenant, owner, metadata, limit } = filter;
  const [since, until] = getTimeWindow(filter);
  return {
    graph: graph ?? null,
    tenant: tenant ?? null,
    user: owner ?? null,
    metadata: metadata === undefined ? null : JSON.stringify(metadata),
    statuses: statuses === undefined ? null : JSON.stringify(statuses),
    dead: JSON.stringify(dead),
    since,
    until,
    limit: limit ?? -1,
  };
}
