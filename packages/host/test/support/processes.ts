import { readdirSync, readFileSync } from "node:fs";
import type { Schedule, World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";

/** The tests that look into /proc; groups, gates and watchers are the same code on macOS. */
export const onLinux: boolean = process.platform === "linux";

interface Found {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

/** Every process that can still run code, by what /proc says. */
function running(): Found[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const [state = "", parent, group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return "ZX".includes(state) ? [] : [{ pid: Number(name), parent: Number(parent), group: Number(group) }];
    } catch {
      return [];
    }
  });
}

/** The pids of a group's living members. */
export function membersOf(group: number): number[] {
  return running().flatMap((found) => (found.group === group ? [found.pid] : []));
}

/** The pids of the living children of a process. */
export function childrenOf(parent: number): number[] {
  return running().flatMap((found) => (found.parent === parent ? [found.pid] : []));
}

/** Whether a process can still run code. */
export function isRunning(pid: number): boolean {
  return running().some((found) => found.pid === pid);
}

/** Wait until something is so; the limit of the test ends what never will be. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((next) => setImmediate(next));
}

/** A world whose time stands still until a test moves it. */
export function stillWorld(): { world: World; advance(ms: number): void; armed(): number } {
  let nowMs = 0;
  let timers: { atMs: number; work: () => void }[] = [];
  const schedule: Schedule = {
    after(delayMs, work) {
      const timer = { atMs: nowMs + delayMs, work };
      timers.push(timer);
      return () => {
        timers = timers.filter((other) => other !== timer);
      };
    },
    at: (dueAt, work) => schedule.after(dueAt - nowMs, work),
    soon: (work) => setImmediate(work),
  };
  return {
    world: { ...systemWorld(), clock: { now: () => nowMs, monotonic: () => nowMs }, schedule },
    advance(ms) {
      nowMs += ms;
      const due = timers.filter((timer) => timer.atMs <= nowMs);
      timers = timers.filter((timer) => timer.atMs > nowMs);
      for (const timer of due) timer.work();
    },
    armed: () => timers.length,
  };
}

/** What a promise rejects with. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("expected a failure, but it succeeded");
}

/** Collects output and waits for a text in it. */
export function outputWatch(): {
  onOutput: (chunk: string) => void;
  seen: (text: string) => Promise<void>;
  all(): string;
} {
  let all = "";
  const waits: { text: string; resolve: () => void }[] = [];
  return {
    all: () => all,
    onOutput(chunk) {
      all += chunk;
      for (const wait of waits) if (all.includes(wait.text)) wait.resolve();
    },
    seen: (text) =>
      new Promise((resolve) => {
        if (all.includes(text)) resolve();
        else waits.push({ text, resolve });
      }),
  };
}
