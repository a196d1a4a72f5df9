/** Time as a platform has it: short timers that count ticks, and a clock that people and sleep move. */
import { describe, expect, test } from "vitest";
import { lookAgainMs, type Schedule, scheduleOf } from "../../src/base/time.ts";
import { systemWorld } from "../../src/index.ts";

const longest = 2 ** 31 - 1;

/** A platform whose timers fire at once when the delay is too long for them, as those of Node and browsers do. */
function platform() {
  let now = 1_700_000_000_000;
  let ticks = 0;
  let timers: { readonly at: number; readonly work: () => void }[] = [];
  let longestAsked = 0;
  return {
    schedule: scheduleOf({
      clock: { now: () => now, monotonic: () => ticks },
      timer: (delayMs, work) => {
        longestAsked = Math.max(longestAsked, delayMs);
        const timer = { at: ticks + (delayMs > longest ? 1 : delayMs), work };
        timers.push(timer);
        return () => {
          timers = timers.filter((each) => each !== timer);
        };
      },
      soon: (work) => work(),
    }),
    longestAsked: () => longestAsked,
    now: () => now,
    /** Time that the machine is awake for. */
    pass: (ms: number): void => {
      const until = ticks + ms;
      for (;;) {
        const [next] = timers.filter(({ at }) => at <= until).toSorted((one, other) => one.at - other.at);
        if (next === undefined) break;
        timers = timers.filter((each) => each !== next);
        now += next.at - ticks;
        ticks = next.at;
        next.work();
      }
      now += until - ticks;
      ticks = until;
    },
    /** The clock is set, or the machine sleeps: no timer counts it. */
    jump: (ms: number): void => {
      now += ms;
    },
    timers: () => timers.length,
  };
}

const ways: readonly (readonly [
  string,
  (schedule: Schedule, now: number, ms: number, work: () => void) => () => void,
])[] = [
  ["after", (schedule, _now, ms, work) => schedule.after(ms, work)],
  ["at", (schedule, now, ms, work) => schedule.at(now + ms, work)],
];

for (const [name, set] of ways) {
  describe(`a schedule, ${name}`, () => {
    test("E39 a delay above 2^31-1 ms fires at its time, once, and not at once", () => {
      for (const ms of [longest, longest + 1, 3 * longest + 17]) {
        const { schedule, now, pass, timers, longestAsked } = platform();
        let fired = 0;
        set(schedule, now(), ms, () => fired++);
        pass(ms - 1);
        expect(fired).toBe(0);
        pass(1);
        expect(fired).toBe(1);
        pass(5 * longest);
        expect([fired, timers()]).toEqual([1, 0]);
        expect(longestAsked()).toBeLessThanOrEqual(longest);
      }
    });

    test("a cancelled delay does not fire, also when it is cancelled in its middle", () => {
      for (const passed of [0, 5, longest + 5]) {
        const { schedule, now, pass, timers } = platform();
        let fired = 0;
        const cancel = set(schedule, now(), 2 * longest, () => fired++);
        pass(passed);
        cancel();
        cancel();
        expect(timers()).toBe(0);
        pass(4 * longest);
        expect(fired).toBe(0);
      }
    });

    test("what is due already fires in a turn of its own", () => {
      for (const ms of [0, -5]) {
        const { schedule, now, pass } = platform();
        let fired = 0;
        set(schedule, now(), ms, () => fired++);
        expect(fired).toBe(0);
        pass(0);
        expect(fired).toBe(1);
      }
    });
  });
}

describe("a clock that is moved", () => {
  test("F7 forwards, or a machine that slept: a time is noticed within a minute of waking, once", () => {
    const { schedule, now, pass, jump } = platform();
    let fired = 0;
    schedule.at(now() + 8 * 3_600_000, () => fired++);
    pass(10 * lookAgainMs + 1_000);
    jump(9 * 3_600_000);
    expect(fired).toBe(0);
    pass(lookAgainMs);
    expect(fired).toBe(1);
    pass(longest);
    expect(fired).toBe(1);
  });

  test("F7 backwards: a time comes late, and never before the clock says so", () => {
    const { schedule, now, pass, jump } = platform();
    const seen: number[] = [];
    const dueAt = now() + 10_000;
    schedule.at(dueAt, () => seen.push(now()));
    pass(9_000);
    jump(-3_600_000);
    pass(3_600_000);
    expect(seen).toEqual([]);
    pass(lookAgainMs);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toBeGreaterThanOrEqual(dueAt);
  });

  test("F7 a delay is as long as it was, whatever the clock says", () => {
    for (const by of [-3_600_000, 3_600_000]) {
      const { schedule, pass, jump } = platform();
      let fired = 0;
      schedule.after(longest + 10_000, () => fired++);
      pass(longest + 5_000);
      jump(by);
      pass(4_999);
      expect(fired).toBe(0);
      pass(1);
      expect(fired).toBe(1);
    }
  });
});

test("the real world fires what is due, and nothing that is weeks away", async () => {
  const { schedule, clock } = systemWorld();
  const fired: string[] = [];
  const cancels = [
    schedule.after(2 ** 31, () => fired.push("after weeks")),
    schedule.at(clock.now() + 2 ** 31, () => fired.push("at a time in weeks")),
  ];
  await new Promise<void>((resolve) => {
    schedule.at(clock.now() + 5, () => {
      fired.push("at");
      schedule.after(5, resolve);
    });
  });
  for (const cancel of cancels) cancel();
  expect(fired).toEqual(["at"]);
});
