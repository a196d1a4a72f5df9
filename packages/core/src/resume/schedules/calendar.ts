/**
 * Calendar of a schedule: its slots, by a cron pattern in a time zone or by a distance. Pure: no clock is read.
 *
 * Daylight saving of a cron pattern: a slot in a skipped hour moves to the end of the gap. A slot at a fixed time in a
 * doubled hour comes once, at the first of the two times; a pattern with every hour or minute has slots in both.
 */
import { Cron } from "croner";
import { invalidOption } from "../../base/invalid-option.ts";
import { latestTime } from "../../base/options.ts";
import type { ScheduleRow } from "../../checkpoint/schedule.ts";

/** Slots of a schedule, in milliseconds since the epoch. */
export interface Calendar {
  /** Returns the first slot after a time; undefined when there is none. */
  findNext(after: number): number | undefined;
  /** Lists the newest slots from `from` to `to`, both inclusive, oldest first, at most `limit`. */
  listNewest(range: { readonly from: number; readonly to: number; readonly limit: number }): readonly number[];
}

/** Fields of a schedule that determine its slots. */
export type CalendarFields = Pick<ScheduleRow, "cron" | "timeZone" | "everyMs" | "anchorAt" | "until">;

/** Creates the calendar of a schedule. Throws `invalid_option` for an invalid pattern or time zone. */
export function createCalendar({ cron, timeZone = "UTC", everyMs = 0, anchorAt, until }: CalendarFields): Calendar {
  const { findNext, findNewest } =
    cron === undefined ? createIntervalSlots(everyMs, anchorAt) : createCronSlots(cron, timeZone);
  const isWithin = (slot: number | undefined): slot is number =>
    slot !== undefined && slot <= Math.min(until ?? latestTime, latestTime);
  return {
    findNext: (after) => {
      const slot = findNext(after);
      return isWithin(slot) ? slot : undefined;
    },
    listNewest: ({ from, to, limit }) =>
      findNewest(Math.min(to, until ?? to), limit)
        .filter((slot) => slot >= from)
        .toReversed(),
  };
}

interface Slots {
  readonly findNext: (after: number) => number | undefined;
  /** Newest slots up to a time, newest first. */
  readonly findNewest: (to: number, limit: number) => readonly number[];
}

function createIntervalSlots(everyMs: number, anchorAt: number): Slots {
  const toIndex = (at: number): number => Math.floor((at - anchorAt) / everyMs);
  return {
    findNext: (after) => anchorAt + Math.max(1, toIndex(after) + 1) * everyMs,
    findNewest: (to, limit) => {
      const newest = toIndex(to);
      const count = Math.min(limit, Math.max(0, newest));
      return Array.from({ length: count }, (_, nth) => anchorAt + (newest - nth) * everyMs);
    },
  };
}

function createCronSlots(pattern: string, timezone: string): Slots {
  const cron = parsePattern(pattern, timezone);
  return {
    findNext: (after) => cron.nextRun(new Date(after))?.getTime(),
    // Slots are whole seconds, and `previousRuns` excludes its reference.
    findNewest: (to, limit) =>
      cron.previousRuns(limit, new Date(Math.floor(to / 1000) * 1000 + 1000)).map((slot) => slot.getTime()),
  };
}

function parsePattern(pattern: string, timezone: string): Cron {
  const where = "schedule";
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
  } catch {
    const fix = "Use a name such as Europe/Berlin or UTC";
    throw invalidOption({ where, option: "timeZone", expected: "an IANA time zone", got: timezone, fix });
  }
  try {
    return new Cron(pattern, { timezone, paused: true });
  } catch (error) {
    const problem = error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
    throw invalidOption({ ...patternError, found: `"${pattern}" (${problem})` });
  }
}

const patternError = {
  ...{ where: "schedule", option: "cron", expected: "a cron pattern of five fields, or six with seconds first" },
  fix: 'Use five fields, such as "0 9 * * 1-5": minute, hour, day of the month, month, day of the week',
};

/** Throws `invalid_option` for a pattern without five or six fields: croner accepts a year and names such as `@daily`. */
export function checkPatternFields(pattern: unknown): void {
  const count = typeof pattern === "string" ? pattern.trim().split(/\s+/).length : 0;
  if (count !== 5 && count !== 6) throw invalidOption({ ...patternError, got: pattern });
}
