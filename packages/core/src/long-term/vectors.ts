/**
 * Search by nearness of meaning: an embedding function makes a vector of the texts of each item, and a search looks at the
 * vectors of its namespace one after the other. So it is exact, needs no index, and finds the same in every store.
 */
import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";

/** Makes vectors of texts, one for each, in their order; those of texts that mean the same are near to each other. */
export type Embed = (
  texts: readonly string[],
) =>
  | Promise<readonly (readonly number[] | Float32Array | Float64Array)[]>
  | readonly (readonly number[] | Float32Array | Float64Array)[];

/** How a store makes vectors of what is put into its long-term side. */
export interface LongTermVectors {
  readonly embed: Embed;
  /** How many numbers a vector has. */
  readonly dimensions: number;
}

/** The vector of a text, of length 1; nothing for a text whose vector points nowhere. Throws what `embed` throws. */
export async function vectorOf(
  { embed, dimensions }: LongTermVectors,
  text: string,
): Promise<Float32Array | undefined> {
  const made: unknown = await embed([text]);
  const vector: unknown = Array.isArray(made) && made.length === 1 ? made[0] : undefined;
  const numbers =
    vector instanceof Float32Array || vector instanceof Float64Array || Array.isArray(vector) ? vector : [];
  if (numbers.length !== dimensions || !numbers.every((each: unknown) => Number.isFinite(each)))
    throw new StatewrightError("invalid_option", {
      what: `embed gave ${describeValue(vector ?? made)} for a text, where a list of one vector of ${dimensions} numbers was due`,
      next: "Give a vector for each text, each with as many finite numbers as dimensions says",
    });
  return normalized(numbers as readonly number[]);
}

function normalized(numbers: ArrayLike<number>): Float32Array | undefined {
  const largest = Array.from(numbers).reduce((most, each) => Math.max(most, Math.abs(each)), 0);
  if (largest === 0) return undefined;
  // Scaled first: the squares of very large and very small numbers are none.
  const scaled = Array.from(numbers, (each) => each / largest);
  const length = Math.sqrt(scaled.reduce((sum, each) => sum + each * each, 0));
  return Float32Array.from(scaled, (each) => each / length);
}

/** How near two vectors of length 1 are: the cosine of the angle between them, from -1 to 1. */
export function nearness(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += (one[at] as number) * (other[at] as number);
  return sum;
}

/** Keeps the best of what it is offered; of those that are equally good the earlier ones. */
export function best<Item>(limit: number): {
  readonly offer: (item: Item, score: number) => void;
  readonly all: () => readonly { readonly item: Item; readonly score: number }[];
} {
  const kept: { readonly item: Item; readonly score: number }[] = [];
  return {
    offer: (item, score) => {
      if (kept.length === limit && score <= (kept[limit - 1] as (typeof kept)[number]).score) return;
      let [low, high] = [0, kept.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((kept[middle] as (typeof kept)[number]).score >= score) low = middle + 1;
        else high = middle;
      }
      kept.splice(low, 0, { item, score });
      if (kept.length > limit) kept.pop();
    },
    all: () => kept,
  };
}
