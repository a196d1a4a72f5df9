/** Guards of schedules: decide at the due time whether a schedule may start its run. */
import type { ScheduleRow } from "../../checkpoint/schedule.ts";
import { type RunSchedule, toRunSchedule } from "./run-schedule.ts";

/**
 * Returns undefined for a schedule that may start its run now, or the reason why not: the slot is then skipped, and the
 * reason is in `last`. A guard that throws leaves the slot due.
 */
export type ScheduleGuard = (schedule: RunSchedule) => string | undefined | Promise<string | undefined>;

/** Guards of an engine. */
export type ScheduleGuards = ReadonlySet<ScheduleGuard>;

/** Returns the reason of the first guard that refuses the run of a schedule; undefined when all allow it. */
export async function findRefusal(guards: ScheduleGuards, row: ScheduleRow): Promise<string | undefined> {
  for (const guard of guards) {
    const reason = await guard(toRunSchedule(row));
    if (reason !== undefined) return reason;
  }
  return undefined;
}
