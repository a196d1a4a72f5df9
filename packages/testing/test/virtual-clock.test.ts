import { readFile } from "node:fs/promises";
import { virtualClock } from "@statewright/testing";
import { describe, expect, test } from "vitest";

describe("the virtual clock", () => {
  test("a virtual clock runs chained timers in order and settles promises between them", async () => {
    const { schedule, clock, ...world } = virtualClock({ now: 1_000 });
    const seen: [string, number][] = [];
    schedule.after(30, () => seen.push(["late", clock.now()]));
    schedule.after(10, async () => {
      seen.push(["first", clock.now()]);
      await Promise.resolve();
      schedule.after(5, () => seen.push(["chained", clock.now()]));
      schedule.soon(() => seen.push(["soon", clock.now()]));
    });
    schedule.after(10, () => seen.push(["second", clock.now()]));
    await world.advance(20);
    expect(seen).toEqual([
      ["first", 1_010],
      ["soon", 1_010],
      ["second", 1_010],
      ["chained", 1_015],
    ]);
    expect(clock.now()).toBe(1_020);
    expect(clock.monotonic()).toBe(20);
    await world.runAll();
    expect(seen.at(-1)).toEqual(["late", 1_030]);
  });

  test("a cancelled virtual timer does not fire, and a delay of weeks takes no real time", async () => {
    const world = virtualClock();
    let fired = 0;
    const cancel = world.schedule.after(10, () => fired++);
    world.schedule.after(60 * 24 * 3_600_000, () => fired++);
    cancel();
    expect(world.timers).toBe(1);
    await world.runAll();
    expect(fired).toBe(1);
    expect(world.clock.monotonic()).toBe(60 * 24 * 3_600_000);
  });

  test("virtual timers by time and by delay fire in one order", async () => {
    const { schedule, clock, ...world } = virtualClock({ now: 1_000 });
    const seen: [string, number][] = [];
    const note = (name: string) => () => seen.push([name, clock.now()]);
    schedule.at(1_020, note("at 20"));
    schedule.after(10, () => {
      note("after 10")();
      schedule.at(1_015, note("at 15"));
      schedule.at(500, note("at once"));
    });
    const cancel = schedule.at(1_012, note("cancelled"));
    cancel();
    await world.advance(30);
    expect(seen).toEqual([
      ["after 10", 1_010],
      ["at once", 1_010],
      ["at 15", 1_015],
      ["at 20", 1_020],
    ]);
  });

  test("a virtual clock detects timers that reschedule endlessly", async () => {
    const world = virtualClock();
    const scheduleNext = (): void => {
      world.schedule.after(1, scheduleNext);
    };
    scheduleNext();
    await expect(world.runAll(50)).rejects.toThrow("expected at most 50 timers, got more");
  });

  test("work scheduled as soon runs on a virtual clock without advancing it", async () => {
    const world = virtualClock();
    await new Promise<void>((resolve) => world.schedule.soon(resolve));
  });

  test("virtual time stops during a file read", async () => {
    const world = virtualClock();
    let timedOut = false;
    world.schedule.after(1_000, () => {
      timedOut = true;
    });
    let read = false;
    const reading = readFile(new URL(import.meta.url)).then(() => {
      read = !timedOut;
    });
    await world.next();
    await reading;
    expect(read).toBe(true);
  });

  test("virtual time stops during a hash, a signature and an encryption", async () => {
    const world = virtualClock();
    let timedOut = false;
    world.schedule.after(1_000, () => {
      timedOut = true;
    });
    const bytes = new Uint8Array(2 ** 20);
    const work = async (): Promise<boolean> => {
      await crypto.subtle.digest("SHA-256", bytes);
      const mac = await crypto.subtle.importKey("raw", new Uint8Array(32), { name: "HMAC", hash: "SHA-256" }, false, [
        "sign",
      ]);
      await crypto.subtle.sign("HMAC", mac, bytes);
      const key = await crypto.subtle.importKey("raw", new Uint8Array(32), "AES-GCM", false, ["encrypt"]);
      await crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, bytes);
      return timedOut;
    };
    const working = work();
    await world.next();
    expect(await working).toBe(false);
  });

  test("virtual randomness repeats with its seed", () => {
    const draw = (seed: number): number[] => {
      const { random } = virtualClock({ seed });
      return Array.from({ length: 5 }, () => random.next());
    };
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
    expect(draw(7).every((value) => value >= 0 && value < 1)).toBe(true);
  });

  test("a virtual clock keeps its log lines", () => {
    const world = virtualClock();
    world.log("warn", "late", { id: 1 });
    expect(world.lines).toEqual([{ level: "warn", message: "late", fields: { id: 1 } }]);
  });
});

test("virtual time advances until a promise settles, through nested timers, and no further", async () => {
  const world = virtualClock();
  const waitFor = (ms: number) => new Promise<void>((resolve) => world.schedule.after(ms, resolve));
  const work = (async () => {
    for (let done = 0; done < 3; done++) await waitFor(1_000);
    return "done";
  })();
  world.schedule.after(60_000, () => undefined);
  expect(await world.until(work)).toBe("done");
  expect([world.clock.monotonic(), world.timers]).toEqual([3_000, 1]);
  await expect(world.until(Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  await expect(world.until(new Promise(() => undefined))).rejects.toThrow("no timer and no pending work is left");
});

test("a poll that sets its own timer again stops a virtual clock for its first timers only [SE7]", async () => {
  const clock = virtualClock();
  let polls = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const poll = (): void => {
    polls += 1;
    timer = setTimeout(poll, 1);
  };
  poll();
  await clock.advance(1_000);
  clearTimeout(timer);
  expect(polls).toBeGreaterThan(9);
  expect(polls).toBeLessThan(100);
});
