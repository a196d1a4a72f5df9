/** Deterministic random decisions for simulations, from a seed. */
import { createSeededRandom } from "../virtual-clock.ts";

/** Random decisions from a single seed. */
export interface Chance {
  /** Returns an integer from 0 to `limit` - 1. */
  getInteger(limit: number): number;
  /** Returns true with this probability. */
  flip(probability: number): boolean;
  /** Returns one of the items. */
  pick<Item>(items: readonly Item[]): Item;
}

/** Creates a source of decisions; equal seeds give equal decisions. */
export function createChance(seed: number): Chance {
  // Mixes the seed: neighbouring seeds must not start with similar decisions.
  const random = createSeededRandom(Math.imul(seed ^ 0x9e_37_79_b9, 0x85_eb_ca_6b));
  return {
    getInteger: (limit) => Math.floor(random.next() * limit),
    flip: (part) => random.next() < part,
    pick: <Item>(items: readonly Item[]): Item => items[Math.floor(random.next() * items.length)] as Item,
  };
}
