/**
 * Effects log: a plain file outside the database. Each effect appends one line at its start and one line at its end,
 * so the demo can count the executed effects independently of the store.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { StatewrightError } from "statewright";

/** Line of the log. `key` is the idempotency key, equal in every attempt of the same effect. */
export interface EffectLine {
  readonly phase: "began" | "finished";
  readonly key: string;
  readonly name: string;
  readonly process: number;
}

/** Runs `work` between a start line and an end line. A failed effect has no end line. */
export async function runLoggedEffect<Value>(
  log: string,
  effect: { readonly key: string; readonly name: string },
  work: () => Value | Promise<Value>,
): Promise<Value> {
  appendLine(log, { phase: "began", ...effect, process: process.pid });
  const value = await work();
  appendLine(log, { phase: "finished", ...effect, process: process.pid });
  return value;
}

/** Appends one line with one write. A full disk pauses the run, like a full database. */
function appendLine(log: string, line: EffectLine): void {
  try {
    appendFileSync(log, `${JSON.stringify(line)}\n`);
  } catch (cause) {
    throw new StatewrightError("store_full", {
      what: `effects log: expected a writable file, got an error for "${log}"`,
      next: "Free disk space, then resume the thread",
      cause,
    });
  }
}

/** Returns the lines of a log, oldest first. Skips a line truncated by a full disk. */
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

/** Counts of effects, by idempotency key. */
export interface EffectCounts {
  /** Number of effects finished at least once. */
  readonly finished: number;
  /** Effects started more than once: after a crash of their process, or by a retry. */
  readonly repeated: readonly string[];
  /** Effects started again after an end line. */
  readonly duplicated: readonly string[];
}

export function countEffects(lines: readonly EffectLine[]): EffectCounts {
  const startCounts = new Map<string, number>();
  const finished = new Set<string>();
  const duplicated = new Set<string>();
  for (const { phase, key } of lines) {
    if (phase === "finished") finished.add(key);
    else {
      startCounts.set(key, (startCounts.get(key) ?? 0) + 1);
      if (finished.has(key)) duplicated.add(key);
    }
  }
  return {
    finished: finished.size,
    repeated: [...startCounts].flatMap(([key, times]) => (times > 1 ? [key] : [])),
    duplicated: [...duplicated],
  };
}
