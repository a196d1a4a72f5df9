/** Finds memories related to a text: by shared words, weighted by rarity, or by vector similarity. */
import type { LongTerm, LongTermItem } from "@statewright/core";

/** Search method: shared words, or vector similarity (`nearness`) in a store with vectors. */
export type MemorySearch = "words" | "nearness";

/** Maximum words of a text to search for, and maximum hits per word. */
const maxWords = 16;
const maxHitsPerWord = 50;
/** Maximum items from which the newest are chosen. */
const maxCandidates = 200;
/** Maximum characters of the text to search for. */
const maxCharacters = 4_000;

/** Finds items related to `text`, best match first; with `fill`, appends the newest other items up to `limit`. */
export async function findMemories(
  memories: LongTerm,
  text: string,
  {
    limit,
    fill,
    by = "words",
  }: { readonly limit: number; readonly fill: boolean; readonly by?: MemorySearch | undefined },
): Promise<readonly LongTermItem[]> {
  const found = by === "words" ? await findByWords(memories, text, limit) : await findByNearness(memories, text, limit);
  if (!fill || found.length === limit) return found;
  const foundIds = new Set(found.map(getItemId));
  const candidates = await memories.search({ limit: maxCandidates });
  const others = candidates
    .filter((item) => !foundIds.has(getItemId(item)))
    .toSorted((left, right) => right.updatedAt - left.updatedAt);
  return [...found, ...others].slice(0, limit);
}

async function findByNearness(memories: LongTerm, text: string, limit: number): Promise<readonly LongTermItem[]> {
  return text.trim() === "" ? [] : memories.search({ near: text.slice(0, maxCharacters), limit });
}

async function findByWords(memories: LongTerm, text: string, limit: number): Promise<readonly LongTermItem[]> {
  const weights = new Map<string, { readonly item: LongTermItem; weight: number }>();
  for (const word of listWords(text)) {
    const hits = await memories.search({ text: word.length > 3 ? `${word}*` : word, limit: maxHitsPerWord });
    for (const item of hits) {
      const id = getItemId(item);
      const entry = weights.get(id) ?? { item, weight: 0 };
      // A rare word weighs more than a word that occurs in all memories.
      entry.weight += 1 / hits.length;
      weights.set(id, entry);
    }
  }
  return [...weights.values()]
    .toSorted((left, right) => right.weight - left.weight || right.item.updatedAt - left.item.updatedAt)
    .map(({ item }) => item)
    .slice(0, limit);
}

function getItemId({ namespace, key }: LongTermItem): string {
  return [...namespace, key].join("/");
}

/** Lists the words of a text, longest first: long words are more specific. */
function listWords(text: string): readonly string[] {
  const words = new Set(
    text
      .slice(0, maxCharacters)
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu),
  );
  return [...words].toSorted((left, right) => right.length - left.length).slice(0, maxWords);
}
