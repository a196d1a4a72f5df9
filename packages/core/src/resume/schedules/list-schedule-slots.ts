/** `listScheduleSlots`: the next slots of a calendar, without a schedule. */
import { invalidOption } from "../../base/invalid-option.ts";
import { checkCount, checkOptions, checkTime } from "../../base/options.ts";
import { type CalendarFields, checkPatternFields, createCalendar } from "./calendar.ts";

/** Calendar and range of `listScheduleSlots`. */
export interface ScheduleSlotsOptions extends Omit<CalendarFields, "anchorAt"> {
  /** Time from which `everyMs` counts, in milliseconds since the epoch. Default: `after`. */
  readonly anchorAt?: number | undefined;
  /** Lists slots after this time, in milliseconds since the epoch. */
  readonly after: number;
  /** Maximum number of slots, 1 to 1,000. */
  readonly count: number;
}

const where = "listScheduleSlots";

/**
 * Lists the next slots of a calendar, in milliseconds since the epoch, oldest first. Throws `invalid_option` for an
 * invalid calendar.
 *
 * @example
 * const slots = listScheduleSlots({ cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", after: clock.now(), count: 5 });
 */
export function listScheduleSlots(options: ScheduleSlotsOptions): readonly number[] {
  checkOptions(where, options, ["cron", "timeZone", "everyMs", "until", "anchorAt", "after", "count"]);
  const { after, count, anchorAt = after, ...calendar } = options;
  checkCount(where, { count }, 1, 1_000);
  checkTime(where, { after, anchorAt });
  if ((calendar.cron === undefined) === (calendar.everyMs === undefined))
    throw invalidOption({
      ...{ where, expected: "one of `cron` and `everyMs`", found: calendar.cron === undefined ? "neither" : "both" },
      fix: calendar.cron === undefined ? "Pass one of the two" : "Remove one of the two",
    });
  checkCount(where, { everyMs: calendar.everyMs }, 1_000, Number.MAX_SAFE_INTEGER);
  if (calendar.cron !== undefined) checkPatternFields(calendar.cron);
  const { findNext } = createCalendar({ ...calendar, anchorAt });
  const slots: number[] = [];
  for (let slot = findNext(after); slot !== undefined && slots.length < count; slot = findNext(slot)) slots.push(slot);
  return slots;
}
