/**
 * Words of texts, extracted alike for stored items and for search texts, so that every store finds the same items. A
 * word is a run of letters, digits and marks; case, accents and Unicode normalization are ignored.
 */
import { isPlainObject } from "../base/json.ts";
import type { LongTermWord } from "./rows.ts";

/** Longer words are truncated to this length. */
const maxWordLength = 64;

/**
 * Extracts the words of all strings in a value, unique, sorted and joined by spaces; undefined when there are none.
 */
export function extractWords(value: unknown): string | undefined {
  const words = new Set<string>();
  for (const text of listStrings(value)) for (const word of splitWords(text)) words.add(word);
  return words.size === 0 ? undefined : [...words].sort().join(" ");
}

/** Parses a search text into words and prefixes. */
export function parseSearchWords(text: string): readonly LongTermWord[] {
  return text.split(/\s+/).flatMap((term) => {
    const words = splitWords(term);
    return words.map((word, index) => ({ word, isPrefix: term.endsWith("*") && index === words.length - 1 }));
  });
}

function splitWords(text: string): readonly string[] {
  return (normalizeText(text).match(/[\p{L}\p{N}\p{M}]+/gu) ?? []).map(truncateWord);
}

/** Removes case and accents. Marks that create distinct letters, as in Hindi, are retained. */
function normalizeText(text: string): string {
  return text
    .toLowerCase()
    .normalize("NFKD")
    .replaceAll(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .normalize("NFC");
}

function truncateWord(word: string): string {
  return word.length <= maxWordLength ? word : [...word].slice(0, maxWordLength).join("");
}

/** Lists all strings in a value, in order. */
export function listStrings(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value) || value instanceof Set) return [...value].flatMap(listStrings);
  if (value instanceof Map) return [...value.values()].flatMap(listStrings);
  return isPlainObject(value) ? Object.values(value).flatMap(listStrings) : [];
}
