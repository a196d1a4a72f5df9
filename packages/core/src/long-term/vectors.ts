/**
 * Semantic search: an embedding function creates a vector of each item's strings, and a search scans the vectors of
 * its namespace. The scan is exact, needs no index, and finds the same items in every store.
 */

import { invalidOption } from "../base/invalid-option.ts";

/** Embeds texts: a single vector per text, in order. Texts of similar meaning have similar vectors. */
export type Embed = (
  texts: readonly string[],
) =>
  | Promise<readonly (readonly number[] | Float32Array | Float64Array)[]>
  | readonly (readonly number[] | Float32Array | Float64Array)[];

/** Embedding options of the long-term side of a store. */
export interface LongTermVectors {
  readonly embed: Embed;
  /** Number of dimensions of a vector. */
  readonly dimensions: number;
}

/** Embeds a text into a vector of length 1; undefined for a zero vector. Throws the errors of `embed`. */
export async function embedText(
  { embed, dimensions }: LongTermVectors,
  text: string,
): Promise<Float32Array | undefined> {
  const made: unknown = await embed([text]);
  const vector: unknown = Array.isArray(made) && made.length === 1 ? made[0] : undefined;
  const numbers =
    vector instanceof Float32Array || vector instanceof Float64Array || Array.isArray(vector) ? vector : [];
  if (numbers.length !== dimensions || !numbers.every((each: unknown) => Number.isFinite(each)))
    throw invalidOption({
      where: "embed",
      expected: `one vector of ${dimensions} numbers for one text`,
      got: vector ?? made,
      fix: "Return one vector per text, each with `dimensions` finite numbers",
    });
  return normalizeVector(numbers as readonly number[]);
}

function normalizeVector(numbers: ArrayLike<number>): Float32Array | undefined {
  const largest = Array.from(numbers).reduce((max, each) => Math.max(max, Math.abs(each)), 0);
  if (largest === 0) return undefined;
  // Scaled first: squares of very large or very small numbers overflow or underflow.
  const scaled = Array.from(numbers, (each) => each / largest);
  const length = Math.sqrt(scaled.reduce((sum, each) => sum + each * each, 0));
  return Float32Array.from(scaled, (each) => each / length);
}

/** Computes the cosine similarity of two vectors of length 1, from -1 to 1. */
export function computeSimilarity(one: Float32Array, other: Float32Array): number {
  let sum = 0;
  for (let at = 0; at < one.length; at++) sum += (one[at] as number) * (other[at] as number);
  return sum;
}

/** Creates a list of the `limit` items with the highest scores; earlier items win ties. */
export function createTopList<Item>(limit: number): {
  readonly offer: (item: Item, score: number) => void;
  readonly list: () => readonly { readonly item: Item; readonly score: number }[];
} {
  const entries: { readonly item: Item; readonly score: number }[] = [];
  return {
    offer: (item, score) => {
      if (entries.length === limit && score <= (entries[limit - 1] as (typeof entries)[number]).score) return;
      let [low, high] = [0, entries.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if ((entries[middle] as (typeof entries)[number]).score >= score) low = middle + 1;
        else high = middle;
      }
      entries.splice(low, 0, { item, score });
      if (entries.length > limit) entries.pop();
    },
    list: () => entries,
  };
}
