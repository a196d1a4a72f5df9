/**
 * Schedules: rows that engines turn into queued runs, one for each slot of a calendar. The rows belong to the store
 * and to no thread. A write compares the revision of the row, so that each slot fires once over all processes.
 */
import type { JsonObject } from "../base/json.ts";
import type { StopKind } from "./checkpoint.ts";

/** Treatment of slots that no engine fired in time: none of them, the newest, or each. */
export type MissedSlots = "skip" | "last" | "all";

/** Newest slot of a schedule that an engine handled. */
export interface FiredSlot {
  /** Time of the slot in the calendar; the time of the call for a run outside of the calendar. */
  readonly slot: number;
  /** Time at which the engine handled the slot. */
  readonly at: number;
  readonly thread?: string | undefined;
  /** Queued run; absent for a skipped slot. */
  readonly run?: string | undefined;
  /** Reason why the slot has no run. */
  readonly skipped?: string | undefined;
}

/** Schedule of runs. Times are in milliseconds since the epoch, by the clock of the store. */
export interface ScheduleRow {
  /** Unique in the store. */
  readonly id: string;
  readonly tenant?: string | undefined;
  /** Owner of the runs and of the threads that they create. */
  readonly owner?: string | undefined;
  /** Graph version that validated the input. */
  readonly graph: string;
  readonly version: number;
  readonly shape: string;
  readonly outline?: string | undefined;
  /** Thread of all runs; absent when each slot has a thread of its own. */
  readonly thread?: string | undefined;
  /** Cron pattern, with an IANA time zone. */
  readonly cron?: string | undefined;
  readonly timeZone?: string | undefined;
  /** Distance of the slots in milliseconds, counted from `anchorAt`. */
  readonly everyMs?: number | undefined;
  readonly anchorAt: number;
  /** Encoded input of the runs. */
  readonly input: string;
  /** True when the input needs values that the state of an existing thread has: the runs create no thread. */
  readonly needsThread?: true | undefined;
  readonly metadata?: JsonObject | undefined;
  /** Handling of a busy thread; absent: the run waits. */
  readonly onBusy?: "reject" | StopKind | undefined;
  readonly missed: MissedSlots;
  /** Time of the last possible slot. */
  readonly until?: number | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Time of the pause; absent for an active schedule. */
  readonly pausedAt?: number | undefined;
  /** Next slot; absent while the schedule is paused, and after its last slot. */
  readonly dueAt?: number | undefined;
  readonly last?: FiredSlot | undefined;
  /** Number of writes of the row; 1 for a new row. */
  readonly revision: number;
}

/** Returns a row whose `last` names the run that the store has for the key of its slot. */
export function setFiredRun<Row extends Pick<ScheduleRow, "last">>(row: Row, run: string | undefined): Row {
  const { last } = row;
  return run === undefined || last?.run === undefined || last.run === run ? row : { ...row, last: { ...last, run } };
}

/** Filter of schedules. A filter with `dueBy` or `dueAfter` lists by due time, another by id. */
export interface ScheduleFilter {
  /** Graphs of the schedules; default: all. */
  readonly graphs?: readonly string[] | undefined;
  readonly tenant?: string | undefined;
  readonly owner?: string | undefined;
  /** Inclusive upper limit of the next slot. */
  readonly dueBy?: number | undefined;
  /** Exclusive lower limit of the next slot. */
  readonly dueAfter?: number | undefined;
  /** Cursor of a list by id: the id of the last row of the previous page. */
  readonly after?: string | undefined;
  readonly limit?: number | undefined;
}
