/** Schedules of the memory store. */
import { checkId } from "../../base/ids.ts";
import type { RunRow } from "../checkpoint.ts";
import { checkScheduleFilter } from "../rules.ts";
import { type ScheduleFilter, type ScheduleRow, setFiredRun } from "../schedule.ts";
import type { ScheduleWrite } from "../store.ts";
import { enqueueRun, matches } from "./memory-runs.ts";
import { saveForSnapshots } from "./memory-snapshot.ts";
import type { Threads } from "./memory-thread.ts";

/** Lists the schedules that match the filter. */
export function listSchedules(threads: Threads, filter: ScheduleFilter): readonly ScheduleRow[] {
  checkScheduleFilter(filter);
  const { graphs, tenant, owner, dueBy, dueAfter, after = "", limit } = filter;
  const isDueList = dueBy !== undefined || dueAfter !== undefined;
  return [...threads.schedules.values()]
    .filter((row) => graphs === undefined || graphs.includes(row.graph))
    .filter((row) => matches(tenant, row.tenant) && matches(owner, row.owner) && row.id > after)
    .filter(({ dueAt }) => !isDueList || isDueBetween(dueAt, dueAfter, dueBy))
    .sort((one, other) => (isDueList ? (one.dueAt ?? 0) - (other.dueAt ?? 0) : 0) || (one.id < other.id ? -1 : 1))
    .slice(0, limit);
}

function isDueBetween(
  dueAt: number | undefined,
  after: number = Number.NEGATIVE_INFINITY,
  by: number = Number.POSITIVE_INFINITY,
): boolean {
  return dueAt !== undefined && dueAt > after && dueAt <= by;
}

/** Writes a schedule of an expected revision, and enqueues its run. */
export function putSchedule(
  threads: Threads,
  { row, revision, run }: ScheduleWrite,
): { readonly row: ScheduleRow; readonly run?: RunRow } | undefined {
  checkId("schedule", row.id);
  if ((threads.schedules.get(row.id)?.revision ?? 0) !== revision) return undefined;
  if (run !== undefined) saveForSnapshots(threads, run.thread);
  const queued: { readonly run?: RunRow } = run === undefined ? {} : { run: enqueueRun(threads, run) };
  const written: ScheduleRow = { ...setFiredRun(row, queued.run?.id), revision: revision + 1 };
  threads.schedules.set(row.id, written);
  return { row: written, ...queued };
}
