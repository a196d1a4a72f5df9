import { readdirSync, readFileSync } from "node:fs";
import type { Schedule, World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";

/** Runs tests that read /proc; groups, gates and watchers have the same code on macOS. */
export const onLinux: boolean = process.platform === "linux";

interface Found {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
}

/** Lists all running processes of /proc. */
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

/** Lists the pids of the running members of a group. */
export function listMembers(group: number): number[] {
  return running().flatMap((found) => (found.group === group ? [found.pid] : []));
}

/** Lists the pids of the running children of a process. */
export function listChildren(parent: number): number[] {
  return running().flatMap((found) => (found.parent === parent ? [found.pid] : []));
}

/** Returns whether a process is running. */
export function isRunning(pid: number): boolean {
  return running().some((found) => found.pid === pid);
}

/**
 * Polls until the condition is true; the test timeout ends a condition that never becomes true. Between two polls the
 * processor is free for the processes that the condition is about.
 */
export async function waitUntil(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((next) => setTimeout(next, 3));
}

/** A world with a clock that only the test advances. */
export function createManualWorld(): { world: World; advance(ms: number): void; armed(): number } {
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

/** Returns the rejection of a promise. */
export async function getFailure(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error("expected a failure, but it succeeded");
}

/** Collects output and waits for a text in it. */
export function watchOutput(): {
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
