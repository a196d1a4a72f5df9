/** External world of a killed process: a log of its external actions, and its kill points. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";

/** External actions of a run, in the order of their calls: three in parallel, an approval, two in parallel. */
export const actions: Readonly<Record<"before" | "after", readonly Action[]>> = {
  before: ["weigh", "book", "reserve"],
  after: ["charge", "post"],
};

export type Action = "weigh" | "book" | "reserve" | "charge" | "post";

/** Duration of each action before its effect. The durations differ, so that parallel actions end in sequence. */
const durationsMs: Readonly<Record<Action, number>> = { weigh: 2, book: 5, reserve: 9, charge: 3, post: 6 };

/** Line of the log. */
export type LogLine =
  | { readonly kind: "action"; readonly thread: string; readonly action: Action; readonly key?: string }
  | { readonly kind: "interrupt"; readonly thread: string; readonly about: string };

export interface ExternalWorld {
  /** Runs an action: waits for its duration, appends one line to the log, and returns after a short pause. */
  runAction(thread: string, action: Action, key?: string): Promise<string>;
  /** Returns true if the action is in the log of the external world. */
  hasHappened(action: Action): boolean;
  /** Logs an interrupt other than the approval of the run. */
  logInterrupt(thread: string, about: string): void;
  /** Kills the process if this is its kill point. */
  passKillPoint(): void;
  /** Returns the number of passed kill points. */
  countKillPoints(): number;
}

/** Returns the result of an action; the same for every caller and every repetition. */
export function getResult(action: Action): string {
  return `${action}: done`;
}

/** Creates the external world of a folder. `killPoint` is the number of the kill point; 0 for none. */
export function createExternalWorld(folder: string, killPoint: number): ExternalWorld {
  let points = 0;
  const write = (line: LogLine): void => appendFileSync(getLogPath(folder), `${JSON.stringify(line)}\n`);
  const passPoint = (): void => {
    points += 1;
    if (points === killPoint) killProcess();
  };
  return {
    runAction: async (thread, action, key) => {
      await pause(durationsMs[action]);
      passPoint();
      write(key === undefined ? { kind: "action", thread, action } : { kind: "action", thread, action, key });
      passPoint();
      await pause(1);
      return getResult(action);
    },
    hasHappened: (action) => readLog(folder).some((line) => line.kind === "action" && line.action === action),
    logInterrupt: (thread, about) => write({ kind: "interrupt", thread, about }),
    passKillPoint: passPoint,
    countKillPoints: () => points,
  };
}

/** Reads all log lines of all processes. */
export function readLog(folder: string): readonly LogLine[] {
  if (!existsSync(getLogPath(folder))) return [];
  return readFileSync(getLogPath(folder), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LogLine);
}

function getLogPath(folder: string): string {
  return join(folder, "outside.ndjson");
}

function killProcess(): void {
  process.kill(process.pid, "SIGKILL");
  // Blocks the thread until the signal arrives, so that nothing else runs in between.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
