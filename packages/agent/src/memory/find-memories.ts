/** Memories that have to do with a text: those that share the most of its rarer words, or mean most nearly the same. */
import type { LongTerm, LongTermItem } from "@statewright/core";

/** How memories are found: by the words that they share with a text, or by their meaning, in a store that has vectors. */
export type MemorySearch = "words" | "nearness";

/** How many words of a text are looked for, and how many items each may find. */
const mostWords = 16;
const mostHits = 50;
/** How many items the newest are chosen from. */
const mostLooked = 200;
/** How much of a text is looked at. */
const mostCharacters = 4_000;

/** What has to do with `text`, the best first; with `fill` the newest of the others behind, up to the limit. */
export async function findMemories(
  place: LongTerm,
  text: string,
  {
    limit,
    fill,
    by = "words",
  }: { readonly limit: number; readonly fill: boolean; readonly by?: MemorySearch | undefined },
): Promise<readonly LongTermItem[]> {
  const found = by === "words" ? await byWords(place, text, limit) : await byNearness(place, text, limit);
  if (!fill || found.length === limit) return found;
  const known = new Set(found.map(idOf));
  const all = await place.search({ limit: mostLooked });
  const others = all.filter((item) => !known.has(idOf(item))).toSorted((one, other) => other.updatedAt - one.updatedAt);
  return [...found, ...others].slice(0, limit);
}

async function byNearness(place: LongTerm, text: string, limit: number): Promise<readonly LongTermItem[]> {
  return text.trim() === "" ? [] : place.search({ near: text.slice(0, mostCharacters), limit });
}

async function byWords(place: LongTerm, text: string, limit: number): Promise<readonly LongTermItem[]> {
  const weights = new Map<string, { readonly item: LongTermItem; weight: number }>();
  for (const word of wordsOf(text)) {
    const hits = await place.search({ text: word.length > 3 ? `${word}*` : word, limit: mostHits });
    for (const item of hits) {
      const id = idOf(item);
      const known = weights.get(id) ?? { item, weight: 0 };
      // A word that few memories have says more than one that all have.
      known.weight += 1 / hits.length;
      weights.set(id, known);
    }
  }
  return [...weights.values()]
    .toSorted((one, other) => other.weight - one.weight || other.item.updatedAt - one.item.updatedAt)
    .map(({ item }) => item)
    .slice(0, limit);
}

function idOf({ namespace, key }: LongTermItem): string {
  return [...namespace, key].join("/");
}

/** Words of a text, the longest first: they tell more. */
function wordsOf(text: string): readonly string[] {
  const words = new Set(
    text
      .slice(0, mostCharacters)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu),
  );
  return [...words].toSorted((one, other) => other.length - one.length).slice(0, mostWords);
}
