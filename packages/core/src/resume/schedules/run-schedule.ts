/** `RunSchedule`: a schedule as lists and calls show it. */
import type { JsonObject } from "../../base/json.ts";
import type { FiredSlot, MissedSlots, ScheduleRow } from "../../checkpoint/schedule.ts";
import type { OnBusy } from "../../run/session/options/options.ts";

/** Schedule of runs. Times are in milliseconds since the epoch, by the clock of the store. */
export interface RunSchedule {
  readonly id: string;
  /** `ended`: the schedule has no slot left. */
  readonly status: "active" | "paused" | "ended";
  /** Graph version that validated the input. */
  readonly graph: string;
  readonly version: number;
  /** Thread of all runs; absent when each slot has a thread of its own. */
  readonly thread?: string;
  readonly cron?: string;
  readonly timeZone?: string;
  readonly everyMs?: number;
  readonly missed: MissedSlots;
  readonly onBusy: OnBusy;
  /** Time of the last possible slot. */
  readonly until?: number;
  readonly metadata?: JsonObject;
  readonly tenant?: string;
  readonly owner?: string;
  readonly createdAt: number;
  /** Time of the last change by a user. */
  readonly updatedAt: number;
  readonly pausedAt?: number;
  /** Next slot; absent for a paused and an ended schedule. */
  readonly nextAt?: number;
  /** Newest slot that an engine handled, or run outside of the calendar, with its run or the reason for none. */
  readonly last?: FiredSlot;
}

/** Returns a schedule without the values that only the engine reads. */
export function toRunSchedule(row: ScheduleRow): RunSchedule {
  const { id, graph, version, missed, onBusy = "enqueue", createdAt, updatedAt, dueAt, pausedAt } = row;
  const status = pausedAt !== undefined ? "paused" : dueAt === undefined ? "ended" : "active";
  const { thread, cron, timeZone, everyMs, until, metadata, tenant, owner, last } = row;
  return {
    ...{ id, status, graph, version, missed, onBusy, createdAt, updatedAt },
    ...(thread === undefined ? {} : { thread }),
    ...(cron === undefined ? {} : { cron }),
    ...(timeZone === undefined ? {} : { timeZone }),
    ...(everyMs === undefined ? {} : { everyMs }),
    ...(until === undefined ? {} : { until }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(tenant === undefined ? {} : { tenant }),
    ...(owner === undefined ? {} : { owner }),
    ...(pausedAt === undefined ? {} : { pausedAt }),
    ...(dueAt === undefined ? {} : { nextAt: dueAt }),
    ...(last === undefined ? {} : { last }),
  };
}
