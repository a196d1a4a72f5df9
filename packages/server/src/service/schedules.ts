/** Schedules of a tenant: calendars whose slots become runs. */
import type { FiredSlot, Json, JsonObject, MissedSlots, OnBusy } from "@statewright/core";
import type { Page, PageOptions } from "./caller-service.ts";

/** Calendar: a cron pattern, or a distance. */
export interface CalendarRequest {
  readonly cron?: string | undefined;
  /** IANA time zone of the pattern. Default `UTC`. */
  readonly timeZone?: string | undefined;
  /** Distance in milliseconds. */
  readonly everyMs?: number | undefined;
  /** Time of the last possible slot, in milliseconds since the epoch. */
  readonly until?: number | undefined;
}

/** Schedule to save. */
export interface ScheduleRequest extends CalendarRequest {
  readonly graph: string;
  /** Thread of all runs. Default: a new thread for each run. */
  readonly thread?: string | undefined;
  readonly input?: Json | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly onBusy?: OnBusy | undefined;
  readonly missed?: MissedSlots | undefined;
}

/** Schedule as its caller sees it. */
export interface ScheduleView extends CalendarRequest {
  readonly id: string;
  readonly status: "active" | "paused" | "ended";
  readonly graph: string;
  readonly thread?: string | undefined;
  readonly missed: MissedSlots;
  readonly onBusy: OnBusy;
  readonly metadata: JsonObject;
  /** Caller who made the schedule. */
  readonly owner?: string | undefined;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly pausedAt?: number | undefined;
  readonly nextAt?: number | undefined;
  readonly last?: FiredSlot | undefined;
}

/** Acts on the schedules of the tenant. */
export interface ScheduleActs {
  /** Schedules by id. */
  listSchedules(query: PageOptions & { readonly graph?: string | undefined }): Promise<Page<ScheduleView>>;
  /** Throws `unknown_schedule`. */
  getSchedule(schedule: string): Promise<ScheduleView>;
  /**
   * Saves a schedule under an id: a new one, or the new content of a known one, whose owner then is this caller. The
   * runs of a schedule have the rights of its owner. Throws `schedule_exists` (409) with `mustBeNew`, `invalid_option`
   * for a calendar with a distance below the minimum, and `too_many_schedules` (422).
   */
  saveSchedule(
    request: ScheduleRequest & { readonly id?: string | undefined; readonly mustBeNew: boolean },
  ): Promise<{ readonly schedule: ScheduleView; readonly isNew: boolean }>;
  /** Throws `unknown_schedule`. Runs that it has queued stay. */
  deleteSchedule(schedule: string): Promise<void>;
  pauseSchedule(schedule: string): Promise<ScheduleView>;
  /** Continues with the first slot after now. */
  resumeSchedule(schedule: string): Promise<ScheduleView>;
  /** Queues a run now, outside of the calendar; one run for each key. */
  runSchedule(schedule: string, key?: string): Promise<{ readonly thread: string; readonly run: string }>;
  /** Next slots of a schedule, or of a calendar that is not saved. */
  listSlots(calendar: { readonly schedule: string } | CalendarRequest, count: number): Promise<readonly number[]>;
}
