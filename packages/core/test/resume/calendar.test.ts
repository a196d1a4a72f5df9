/** Slots of schedules: cron patterns over ten years of daylight saving, and distances. */
import { describe, expect, test } from "vitest";
import { type Calendar, createCalendar } from "../../src/resume/schedules/calendar.ts";

const hourMs = 3_600_000;
const start = Date.UTC(2025, 0, 1);
const end = Date.UTC(2035, 0, 1);

const zones = ["Europe/Berlin", "America/New_York"] as const;

/** Wall times of each half hour of ten years in a zone, as `2025-03-30 02:30`. */
function listWallTimes(timeZone: string): readonly (readonly [at: number, day: string, time: string])[] {
  const parts = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit" } as const;
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone, ...parts, hourCycle: "h23" });
  const times: (readonly [number, string, string])[] = [];
  for (let at = start; at < end; at += hourMs / 2) {
    const [day = "", time = ""] = format.format(at).split(" ");
    times.push([at, day, time]);
  }
  return times;
}

function listSlots({ findNext }: Calendar, from = start, to = end): readonly number[] {
  const slots: number[] = [];
  for (let slot = findNext(from - 1); slot !== undefined && slot < to; slot = findNext(slot)) slots.push(slot);
  return slots;
}

/** Times at which a zone changes its distance to UTC. */
function listChanges(walls: ReturnType<typeof listWallTimes>): readonly number[] {
  return walls.flatMap(([at, , time], nth) => {
    const before = walls[nth - 1]?.[2] ?? time;
    return (toMinutes(time) - toMinutes(before) + 1_440) % 1_440 === 30 || nth === 0 ? [] : [at];
  });
}

const toMinutes = (time: string): number => Number(time.slice(0, 2)) * 60 + Number(time.slice(3));

/** First time of each day at a wall time; a day without it has the first time after it. */
function listDaily(walls: ReturnType<typeof listWallTimes>, time: string): readonly number[] {
  const days = new Map<string, { exact?: number; later?: number }>();
  // Without the part of a day before the first midnight.
  for (const [at, day, wall] of walls.slice(walls.findIndex(([, , first]) => first === "00:00"))) {
    const found = days.get(day) ?? {};
    days.set(day, found);
    if (wall === time) found.exact ??= at;
    if (wall > time) found.later ??= at;
  }
  return [...days.values()].flatMap(({ exact, later }) => exact ?? later ?? []);
}

describe("a cron pattern over ten years of daylight saving", () => {
  for (const timeZone of zones) {
    const walls = listWallTimes(timeZone);

    for (const time of ["09:00", "02:30", "01:30"])
      test(`at ${time} in ${timeZone} has one slot on each day: skipped hours move to the end of the gap, doubled ones count once [Y7]`, () => {
        const [hour, minute] = time.split(":").map(Number);
        const calendar = createCalendar({ cron: `${minute} ${hour} * * *`, timeZone, anchorAt: start });
        const slots = listSlots(calendar, walls.find(([, , wall]) => wall === "00:00")?.[0]);
        const expected = listDaily(walls, time);
        expect(slots.length).toBeGreaterThan(3_650);
        expect(slots.map((at) => new Date(at).toISOString())).toEqual(expected.map((at) => new Date(at).toISOString()));
        expect(calendar.listNewest({ from: start, to: end - 1, limit: 400 })).toEqual(slots.slice(-400));
      });

    test(`of each hour in ${timeZone} has a slot in each of the two hours that have the same name [Y7]`, () => {
      const calendar = createCalendar({ cron: "0 * * * *", timeZone, anchorAt: start });
      const changes = listChanges(walls);
      expect(changes.length).toBe(20);
      for (const change of changes) {
        const from = change - 24 * hourMs;
        const expected = Array.from({ length: 48 }, (_, nth) => from + nth * hourMs);
        expect(listSlots(calendar, from, from + 48 * hourMs)).toEqual(expected);
      }
    });

    test(`in ${timeZone} has the same next slot from every half hour of a changed day [Y7]`, () => {
      const calendar = createCalendar({ cron: "30 2 * * *", timeZone, anchorAt: start });
      const slots = listSlots(calendar);
      for (const change of listChanges(walls).slice(0, 4))
        for (let at = change - 24 * hourMs; at < change + 24 * hourMs; at += hourMs / 2)
          expect(calendar.findNext(at)).toBe(slots.find((slot) => slot > at));
    });
  }
});

test("the slots of a distance are counted from the anchor, up to the end of the schedule [Y7]", () => {
  const calendar = createCalendar({ everyMs: 1_500, anchorAt: 10_000, until: 16_000 });
  expect([9_000, 10_000, 11_499, 11_500, 14_499, 14_500].map((at) => calendar.findNext(at))).toEqual([
    11_500, 11_500, 11_500, 13_000, 14_500, 16_000,
  ]);
  expect(calendar.findNext(16_000)).toBe(undefined);
  expect(calendar.listNewest({ from: 11_500, to: 15_999, limit: 9 })).toEqual([11_500, 13_000, 14_500]);
  expect(calendar.listNewest({ from: 11_500, to: 99_999, limit: 2 })).toEqual([14_500, 16_000]);
  expect(calendar.listNewest({ from: 11_501, to: 13_000, limit: 9 })).toEqual([13_000]);
});

test("the newest slots of a cron pattern include the slot of the given moment [Y7]", () => {
  const calendar = createCalendar({ cron: "*/10 * * * * *", anchorAt: 0, until: 65_000 });
  expect(calendar.listNewest({ from: 20_000, to: 40_000, limit: 9 })).toEqual([20_000, 30_000, 40_000]);
  expect(calendar.listNewest({ from: 0, to: 39_999, limit: 1 })).toEqual([30_000]);
  expect(calendar.findNext(60_000)).toBe(undefined);
});
