/** Two resumes of one thread with the same answer at the same moment: by two processes, and by two calls in one. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { readLog } from "./external-world.ts";
import { type ChildOptions, startRacer } from "./process.ts";
import type { ContenderId } from "./program.ts";

/** What was counted over all races of a contender. */
export interface RaceCounts {
  readonly races: number;
  /** Races in which the card was charged more than once. */
  readonly chargedTwice: number;
  /** Races in which it was not charged at all. */
  readonly neverCharged: number;
  /** What the two were told, and how often. */
  readonly told: Readonly<Record<string, number>>;
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
  const options: ChildOptions = { contender, folder, entry, compiled: join(home, "compiled") };
  const one = await startRacer(options);
  const other = kind === "one process" ? undefined : await startRacer(options);
  const told: Record<string, number> = {};
  try {
    for (let race = 0; race < races; race++) {
      const thread = `race-${race}`;
      await one.goOn(thread);
      const outcomes =
        other === undefined
          ? await one.goOn(thread, thread)
          : (await Promise.all([one.goOn(thread), other.goOn(thread)])).flat();
      const both = outcomes.toSorted().join(" and ");
      told[both] = (told[both] ?? 0) + 1;
    }
  } finally {
    one.end();
    other?.end();
  }
  const charges = new Map<string, number>();
  for (const line of readLog(folder))
    if (line.kind === "did" && line.errand === "charge") charges.set(line.thread, (charges.get(line.thread) ?? 0) + 1);
  return {
    races,
    chargedTwice: [...charges.values()].filter((times) => times > 1).length,
    neverCharged: races - charges.size,
    told,
  };
}
