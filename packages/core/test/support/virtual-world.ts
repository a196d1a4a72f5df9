/** A world for the tests of core: virtual time, seeded random numbers and a recorded log. */

import { systemWorld } from "../../src/adapter.ts";
import type { LogLevel, Schedule, World } from "../../src/index.ts";

export interface VirtualWorld extends World {
  /** Settles promises and stores without advancing the clock. */
  waitUntilIdle(): Promise<void>;
  /** Advances the clock; due timers fire in order, each at its time. */
  advance(ms: number): Promise<void>;
  /** Number of pending timers. */
  readonly timers: number;
  readonly lines: readonly {
    readonly level: LogLevel;
    readonly message: string;
    readonly fields: Readonly<Record<string, unknown>> | undefined;
  }[];
}

export function createVirtualWorld(start = 1_000_000): VirtualWorld {
  const real = systemWorld().schedule;
  const timers = new Set<{ readonly at: number; readonly work: () => void }>();
  const lines: VirtualWorld["lines"][number][] = [];
  let now = start;
  let chance = 1;
  const schedule: Schedule = {
    after: (delayMs, work) => {
      const timer = { at: now + Math.max(0, delayMs), work };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    at: (dueAt, work) => schedule.after(dueAt - now, work),
    soon: real.soon,
  };

  async function waitUntilIdle(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) await new Promise<void>((resolve) => real.soon(resolve));
  }

  return {
    clock: { now: () => now, monotonic: () => now - start },
    random: {
      next: () => {
        chance = (chance * 48_271) % 2_147_483_647;
        return chance / 2_147_483_647;
      },
    },
    schedule,
    log: (level, message, fields) => {
      lines.push({ level, message, fields });
    },
    waitUntilIdle,
    advance: async (ms) => {
      const until = now + ms;
      await waitUntilIdle();
      for (;;) {
        const due = [...timers].filter((timer) => timer.at <= until).sort((one, other) => one.at - other.at)[0];
        if (due === undefined) break;
        timers.delete(due);
        now = Math.max(now, due.at);
        due.work();
        await waitUntilIdle();
      }
      now = until;
    },
    get timers() {
      return timers.size;
    },
    lines,
  };
}
