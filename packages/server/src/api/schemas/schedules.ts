/** Schemas of schedules. */
import type { Json, JsonObject, OnBusy } from "@statewright/core";
import * as z from "zod";
import {
  before,
  createPage,
  givenTime,
  id,
  json,
  limit,
  metadata,
  nameSchema,
  onBusy,
  time,
  type WirePage,
} from "./common.ts";

const scheduleId: z.ZodType<string> = z
  .string()
  .regex(/^[A-Za-z0-9_.:-]{1,50}$/)
  .describe("1 to 50 of A-Z a-z 0-9 _ . : -");

/** Calendar of a schedule. */
export interface WireCalendar {
  readonly cron?: string | undefined;
  readonly timeZone?: string | undefined;
  readonly everyMs?: number | undefined;
  readonly until?: string | undefined;
}

const calendarFields = {
  cron: z.string().min(1).max(200).optional().describe("Cron pattern of five fields, or six with seconds first"),
  timeZone: z.string().min(1).max(64).optional().describe("IANA time zone of the pattern. Default UTC."),
  everyMs: z
    .number()
    .int()
    .min(1_000)
    .optional()
    .describe("Distance of the runs in milliseconds, in place of a pattern"),
  until: givenTime.optional().describe("Time of the last possible run. Default: none."),
};

/** New schedule, or its new content. */
export interface WireNewSchedule extends WireCalendar {
  readonly id?: string | undefined;
  readonly graph: string;
  readonly thread?: string | undefined;
  readonly input?: Json | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly onBusy?: OnBusy | undefined;
  readonly missed?: "skip" | "last" | "all" | undefined;
}

/** New schedule, or its new content. */
export const newSchedule: z.ZodType<WireNewSchedule> = nameSchema(
  "NewSchedule",
  z.strictObject({
    id: scheduleId.optional().describe("Default: a new id"),
    graph: id.describe("Name of the graph"),
    ...calendarFields,
    thread: id.optional().describe("Thread of all runs. Default: a new thread for each run."),
    input: json.optional(),
    metadata: metadata.optional().describe("Metadata of the runs"),
    onBusy: onBusy.optional().describe("Handling of a busy thread. Default `enqueue`; `reject` skips the run."),
    missed: z
      .enum(["skip", "last", "all"])
      .optional()
      .describe("Runs that were due while no process worked: none, the newest, or each. Default `last`."),
  }),
);

/** Schedule of runs. */
export interface WireSchedule extends WireCalendar {
  readonly id: string;
  readonly status: "active" | "paused" | "ended";
  readonly graph: string;
  readonly thread?: string | undefined;
  readonly missed: "skip" | "last" | "all";
  readonly onBusy: OnBusy;
  readonly metadata: JsonObject;
  readonly owner?: string | undefined;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly pausedAt?: string | undefined;
  readonly nextAt?: string | undefined;
  readonly last?:
    | {
        readonly slot: string;
        readonly at: string;
        readonly thread?: string | undefined;
        readonly run?: string | undefined;
        readonly skipped?: string | undefined;
      }
    | undefined;
}

/** Schedule of runs. */
export const schedule: z.ZodType<WireSchedule> = nameSchema(
  "Schedule",
  z.strictObject({
    id: z.string(),
    status: z.enum(["active", "paused", "ended"]).describe("`ended`: no run is left"),
    graph: z.string(),
    ...calendarFields,
    until: time.optional(),
    thread: z.string().optional().describe("Absent when each run has a new thread"),
    missed: z.enum(["skip", "last", "all"]),
    onBusy,
    metadata,
    owner: z.string().optional().describe("Caller who made the schedule; its runs have the rights of this caller"),
    createdAt: time,
    updatedAt: time,
    pausedAt: time.optional(),
    nextAt: time.optional().describe("Next run; absent for a paused or ended schedule"),
    last: z
      .strictObject({
        slot: time.describe("Time by the calendar"),
        at: time.describe("Time at which a process handled it"),
        thread: z.string().optional(),
        run: z.string().optional().describe("Absent when no run was started"),
        skipped: z.string().optional().describe("Why no run was started"),
      })
      .optional(),
  }),
);

/** Page of schedules, by id. */
export const schedulePage: z.ZodType<WirePage<WireSchedule>> = createPage("SchedulePage", schedule);

/** Filter of schedules. */
export interface WireScheduleQuery {
  readonly graph?: string | undefined;
  readonly before?: string | undefined;
  readonly limit?: number | undefined;
}

/** Filter of schedules. */
export const scheduleQuery: z.ZodType<WireScheduleQuery> = z.strictObject({
  graph: id.optional(),
  before: before.optional(),
  limit: limit.optional(),
});

/** Number of the next runs to compute. */
export interface WireSlotQuery {
  readonly count?: number | undefined;
}

const slotCount = z.number().int().min(1).max(100).describe("Number of times. Default 10.");

/** Number of the next runs to compute. */
export const slotQuery: z.ZodType<WireSlotQuery> = z.strictObject({
  count: z.coerce.number().int().min(1).max(100).optional().describe("Number of times. Default 10."),
});

/** Calendar to try. */
export interface WireSlotRequest extends WireCalendar {
  readonly count?: number | undefined;
}

/** Calendar to try. */
export const slotRequest: z.ZodType<WireSlotRequest> = nameSchema(
  "SlotRequest",
  z.strictObject({ ...calendarFields, count: slotCount.optional() }),
);

/** Times of the next runs. */
export interface WireSlots {
  readonly data: readonly string[];
}

/** Times of the next runs. */
export const slots: z.ZodType<WireSlots> = nameSchema("Slots", z.strictObject({ data: z.array(time) }));
