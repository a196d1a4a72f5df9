/** Platform time: limited timer delays, and a system clock that users and sleep can move. */
import { describe, expect, test } from "vitest";
import { systemWorld } from "../../src/adapter.ts";
import { clockCheckMs, createSchedule, type Schedule } from "../../src/base/time.ts";

const longest = 2 ** 31 - 1;

/**
 * Creates a platform whose timers fire at once for a delay above the limit, like the timers of Node.js and browsers.
 */
function platform() {
  let now = 1_700_000_000_000;
  let ticks = 0;
  let timers: { readonly at: number; readonly work: () => void }[] = [];
  let longestAsked = 0;
  return {
    schedule: createSchedule({
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
    /** Advances the clock and the timers together: the machine is awake. */
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
    /** Moves the clock without the timers: the clock was set, or the machine slept. */
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
  describe(`schedule, ${name}`, () => {
    test("a delay above 2^31-1 ms fires once at its due time and not at once [E39]", () => {
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

    test("a cancelled delay does not fire, also when cancelled halfway", () => {
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

    test("a delay that is already due fires in a later turn of the event loop", () => {
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

describe("moved system clock", () => {
  test("after a forward clock jump or a machine sleep, a due time fires once within a minute [F7]", () => {
    const { schedule, now, pass, jump } = platform();
    let fired = 0;
    schedule.at(now() + 8 * 3_600_000, () => fired++);
    pass(10 * clockCheckMs + 1_000);
    jump(9 * 3_600_000);
    expect(fired).toBe(0);
    pass(clockCheckMs);
    expect(fired).toBe(1);
    pass(longest);
    expect(fired).toBe(1);
  });

  test("after a backward clock jump, a due time fires late and never before the clock reaches the due time [F7]", () => {
    const { schedule, now, pass, jump } = platform();
    const seen: number[] = [];
    const dueAt = now() + 10_000;
    schedule.at(dueAt, () => seen.push(now()));
    pass(9_000);
    jump(-3_600_000);
    pass(3_600_000);
    expect(seen).toEqual([]);
    pass(clockCheckMs);
    expect(seen).toHaveLength(1);
    expect(seen[0]).toBeGreaterThanOrEqual(dueAt);
  });

  test("a delay keeps its length across clock jumps [F7]", () => {
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

test("the system world fires due timers and none that are weeks away", async () => {
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
