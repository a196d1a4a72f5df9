/**
 * The effects log: a plain file outside the database, to which every effect adds a line when it begins and one when it
 * has finished. It is how the demo counts, from outside, what really ran.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { StatewrightError } from "statewright";

/** One line of the log. `key` is the idempotency key: the same in every attempt of the same effect. */
export interface EffectLine {
  readonly what: "began" | "finished";
  readonly key: string;
  readonly name: string;
  readonly process: number;
}

/** Do `work` between its two lines. A failure leaves the effect begun and not finished. */
export async function logged<Value>(
  log: string,
  effect: { readonly key: string; readonly name: string },
  work: () => Value | Promise<Value>,
): Promise<Value> {
  append(log, { what: "began", ...effect, process: process.pid });
  const value = await work();
  append(log, { what: "finished", ...effect, process: process.pid });
  return value;
}

/** One write of one line. A full disk pauses the run, as it would when the database met it. */
function append(log: string, line: EffectLine): void {
  try {
    appendFileSync(log, `${JSON.stringify(line)}\n`);
  } catch (cause) {
    throw new StatewrightError("store_full", {
      what: `the effects log "${log}" could not be written`,
      next: "Make room on the disk, then resume the thread",
      cause,
    });
  }
}

/** The lines of a log, oldest first. A line that a full disk cut short is left out. */
export function readEffects(log: string): readonly EffectLine[] {
  return readFileSync(log, "utf8")
    .split("\n")
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as EffectLine];
      } catch {
        return [];
      }
    });
}

/** What the log says about repetition, by idempotency key. */
export interface EffectCounts {
  /** Effects that were finished at least once. */
  readonly finished: number;
  /** Effects that began more than once: their process died in between, or they were tried again. */
  readonly repeated: readonly string[];
  /** Effects that began again after they had finished. */
  readonly twice: readonly string[];
}

/** Count a log. */
export function countEffects(lines: readonly EffectLine[]): EffectCounts {
  const begun = new Map<string, number>();
  const finished = new Set<string>();
  const twice = new Set<string>();
  for (const { what, key } of lines) {
    if (what === "finished") finished.add(key);
    else {
      begun.set(key, (begun.get(key) ?? 0) + 1);
      if (finished.has(key)) twice.add(key);
    }
  }
  return {
    finished: finished.size,
    repeated: [...begun].flatMap(([key, times]) => (times > 1 ? [key] : [])),
    twice: [...twice],
  };
}
