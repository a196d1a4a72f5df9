/** Seeded pseudo-random numbers. */
export interface Random {
  /** Integer from 0 up to, not including, `below`. */
  whole(below: number): number;
  pick<Item>(items: readonly Item[]): Item;
}

/** Mulberry32 generator. */
export function createRandom(seed: number): Random {
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const drawBelow = (below: number): number => Math.floor(next() * below);
  return { whole: drawBelow, pick: (items) => items[drawBelow(items.length)] as (typeof items)[number] };
}

/** Result of a gate; `repeat` runs only the first failing case. */
export interface Found {
  readonly cases: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly failures: readonly { readonly seed: number; readonly what: string }[];
}

/** Runs cases from a seed on, each with its own seed; a case returns the name of its outcome. */
export async function runCases(
  { first, count }: { readonly first: number; readonly count: number },
  run: (random: Random, seed: number) => Promise<string>,
): Promise<Found> {
  const counts: Record<string, number> = {};
  const failures: { seed: number; what: string }[] = [];
  for (let seed = first; seed < first + count; seed++) {
    try {
      const met = await run(createRandom(seed), seed);
      counts[met] = (counts[met] ?? 0) + 1;
    } catch (thrown) {
      failures.push({ seed, what: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) });
    }
  }
  return { cases: count, counts, failures };
}
