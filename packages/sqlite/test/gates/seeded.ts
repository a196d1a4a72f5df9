/** Numbers that look random and are the same in every run of a seed. */
export interface Seeded {
  /** From 0 up to, not including, `below`. */
  whole(below: number): number;
  pick<Item>(items: readonly Item[]): Item;
}

/** Mulberry32: each seed is a sequence of its own. */
export function seeded(seed: number): Seeded {
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const whole = (below: number): number => Math.floor(next() * below);
  return { whole, pick: (items) => items[whole(items.length)] as (typeof items)[number] };
}

/** What a gate found; `repeat` runs the first failing case alone. */
export interface Found {
  readonly cases: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly failures: readonly { readonly seed: number; readonly what: string }[];
}

/** Run cases from a seed on, each with a seed of its own; a case gives the name of what it met. */
export async function cases(
  { first, count }: { readonly first: number; readonly count: number },
  run: (random: Seeded, seed: number) => Promise<string>,
): Promise<Found> {
  const counts: Record<string, number> = {};
  const failures: { seed: number; what: string }[] = [];
  for (let seed = first; seed < first + count; seed++) {
    try {
      const met = await run(seeded(seed), seed);
      counts[met] = (counts[met] ?? 0) + 1;
    } catch (thrown) {
      failures.push({ seed, what: thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown) });
    }
  }
  return { cases: count, counts, failures };
}
