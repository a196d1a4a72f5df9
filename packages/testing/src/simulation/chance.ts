/** Chance for simulations: small decisions from a seed, the same every time. */
import { seededRandom } from "../virtual-clock.ts";

/** Decisions from one seed. */
export interface Chance {
  /** A whole number from 0, below `limit`. */
  below(limit: number): number;
  /** True with this probability. */
  share(part: number): boolean;
  of<Item>(items: readonly Item[]): Item;
}

/** A source of decisions; the same seed gives the same ones. */
export function chanceOf(seed: number): Chance {
  // Neighbouring seeds must not begin alike.
  const random = seededRandom(Math.imul(seed ^ 0x9e_37_79_b9, 0x85_eb_ca_6b));
  return {
    below: (limit) => Math.floor(random.next() * limit),
    share: (part) => random.next() < part,
    of: <Item>(items: readonly Item[]): Item => items[Math.floor(random.next() * items.length)] as Item,
  };
}
