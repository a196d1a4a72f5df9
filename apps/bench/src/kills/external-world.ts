/** What a process that is to die has outside of its database: a log of what it did to the world, and points at which it dies. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as pause } from "node:timers/promises";

/** What the run does outside, in the order of its calls: three side by side, a question, two side by side. */
export const errands: Readonly<Record<"before" | "after", readonly Errand[]>> = {
  before: ["weigh", "book", "reserve"],
  after: ["charge", "post"],
};

export type Errand = "weigh" | "book" | "reserve" | "charge" | "post";

/** How long each takes before it happens: those that run side by side end one after the other. */
const takesMs: Readonly<Record<Errand, number>> = { weigh: 2, book: 5, reserve: 9, charge: 3, post: 6 };

/** A line of the log. */
export type Line =
  | { readonly kind: "did"; readonly thread: string; readonly errand: Errand; readonly key?: string }
  | { readonly kind: "asked"; readonly thread: string; readonly about: string };

export interface Outside {
  /** Do an errand: it takes its time, happens by one line in the log, and returns a moment later. */
  run(thread: string, errand: Errand, key?: string): Promise<string>;
  /** Has it happened, as the other side knows it? */
  happened(errand: Errand): boolean;
  /** A person is asked something else than the question of the run. */
  asked(thread: string, about: string): void;
  /** The process dies here, if this is its point. */
  point(): void;
  /** How many points it came to. */
  points(): number;
}

/** What an errand gives, whoever runs it and however often. */
export function resultOf(errand: Errand): string {
  return `${errand}: done`;
}

/** The log of a folder, and a death at the point of this number; 0 for none. */
export function outsideIn(folder: string, dieAt: number): Outside {
  let points = 0;
  const write = (line: Line): void => appendFileSync(logOf(folder), `${JSON.stringify(line)}\n`);
  const point = (): void => {
    points += 1;
    if (points === dieAt) die();
  };
  return {
    run: async (thread, errand, key) => {
      await pause(takesMs[errand]);
      point();
      write(key === undefined ? { kind: "did", thread, errand } : { kind: "did", thread, errand, key });
      point();
      await pause(1);
      return resultOf(errand);
    },
    happened: (errand) => readLog(folder).some((line) => line.kind === "did" && line.errand === errand),
    asked: (thread, about) => write({ kind: "asked", thread, about }),
    point,
    points: () => points,
  };
}

/** All lines of the log, of all processes. */
export function readLog(folder: string): readonly Line[] {
  if (!existsSync(logOf(folder))) return [];
  return readFileSync(logOf(folder), "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

function logOf(folder: string): string {
  return join(folder, "outside.ndjson");
}

function die(): void {
  process.kill(process.pid, "SIGKILL");
  // Where the signal takes a moment, nothing may happen in it.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}
