/** External world of a killed process: a log of its effects, and its kill points. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";

/** Errands of a run, in the order of their calls: three in parallel, an approval, two in parallel. */
export const errands: Readonly<Record<"before" | "after", readonly Errand[]>> = {
  before: ["weigh", "book", "reserve"],
  after: ["charge", "post"],
};

export type Errand = "weigh" | "book" | "reserve" | "charge" | "post";

/** Duration of each errand before its effect. The durations differ, so that parallel errands end in sequence. */
const durationsMs: Readonly<Record<Errand, number>> = { weigh: 2, book: 5, reserve: 9, charge: 3, post: 6 };

/** Line of the log. */
export type LogLine =
  | { readonly kind: "did"; readonly thread: string; readonly errand: Errand; readonly key?: string }
  | { readonly kind: "asked"; readonly thread: string; readonly about: string };

export interface ExternalWorld {
  /** Runs an errand: waits for its duration, appends one line to the log, and returns after a short pause. */
  runErrand(thread: string, errand: Errand, key?: string): Promise<string>;
  /** Returns true if the errand is in the log of the external world. */
  hasHappened(errand: Errand): boolean;
  /** Logs an interrupt other than the approval of the run. */
  logInterrupt(thread: string, about: string): void;
  /** Kills the process if this is its kill point. */
  passKillPoint(): void;
  /** Returns the number of passed kill points. */
  countKillPoints(): number;
}

/** Returns the result of an errand; the same for every caller and every repetition. */
export function getResult(errand: Errand): string {
  return `${errand}: done`;
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
    runErrand: async (thread, errand, key) => {
      await pause(durationsMs[errand]);
      passPoint();
      write(key === undefined ? { kind: "did", thread, errand } : { kind: "did", thread, errand, key });
      passPoint();
      await pause(1);
      return getResult(errand);
    },
    hasHappened: (errand) => readLog(folder).some((line) => line.kind === "did" && line.errand === errand),
    logInterrupt: (thread, about) => write({ kind: "asked", thread, about }),
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
