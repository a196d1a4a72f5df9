/** Two concurrent resumes of one thread with the same answer: by two processes, and by two calls in one process. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { readLog } from "./external-world.ts";
import { type ChildOptions, startRacer } from "./process.ts";
import type { ContenderId } from "./program.ts";

/** Counts over all races of a contender. */
export interface RaceCounts {
  readonly races: number;
  /** Races with more than one charge of the card. */
  readonly chargedTwice: number;
  /** Races without a charge of the card. */
  readonly neverCharged: number;
  /** Number of races by the outcomes of the two resumes. */
  readonly outcomes: Readonly<Record<string, number>>;
}

export type RaceKind = "two processes" | "one process";

export async function measureRaces(
  contender: ContenderId,
  {
    races,
    kind,
    home,
    entry,
  }: { readonly races: number; readonly kind: RaceKind; readonly home: string; readonly entry: string },
): Promise<RaceCounts> {
  const folder = join(home, contender, kind.replace(" ", "-"));
  mkdirSync(folder, { recursive: true });
  const options: ChildOptions = { contender, folder, entry, compileCache: join(home, "compiled") };
  const first = await startRacer(options);
  const second = kind === "one process" ? undefined : await startRacer(options);
  const counts: Record<string, number> = {};
  try {
    for (let race = 0; race < races; race++) {
      const thread = `race-${race}`;
      await first.resume(thread);
      const outcomes =
        second === undefined
          ? await first.resume(thread, thread)
          : (await Promise.all([first.resume(thread), second.resume(thread)])).flat();
      const label = outcomes.toSorted().join(" and ");
      counts[label] = (counts[label] ?? 0) + 1;
    }
  } finally {
    first.kill();
    second?.kill();
  }
  const charges = new Map<string, number>();
  for (const line of readLog(folder))
    if (line.kind === "action" && line.action === "charge")
      charges.set(line.thread, (charges.get(line.thread) ?? 0) + 1);
  return {
    races,
    chargedTwice: [...charges.values()].filter((times) => times > 1).length,
    neverCharged: races - charges.size,
    outcomes: counts,
  };
}
