/**
 * Words of texts, made the same way for what is kept and for what is looked for, so that every store finds the same. A word
 * is a run of letters, digits and marks; case, accents and ways of writing one character do not count.
 */
import { isPlainObject } from "../base/json.ts";
import type { LongTermWord } from "./rows.ts";

/** Longer words are told apart by their beginning only. */
const longestWord = 64;

/** The words of all texts in a value, each once, in their order, as one text; nothing when there are none. */
export function wordsIn(value: unknown): string | undefined {
  const words = new Set<string>();
  for (const text of textsIn(value)) for (const word of wordsOf(text)) words.add(word);
  return words.size === 0 ? undefined : [...words].sort().join(" ");
}

/** What a search text asks for. */
export function wantedWords(text: string): readonly LongTermWord[] {
  return text.split(/\s+/).flatMap((term) => {
    const words = wordsOf(term);
    return words.map((word, index) => ({ word, isPrefix: term.endsWith("*") && index === words.length - 1 }));
  });
}

function wordsOf(text: string): readonly string[] {
  return (plain(text).match(/[\p{L}\p{N}\p{M}]+/gu) ?? []).map(cut);
}

/** Without case and accents. Marks that make other letters of their own, as in Hindi, stay. */
function plain(text: string): string {
  return text
    .toLowerCase()
    .normalize("NFKD")
    .replaceAll(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .normalize("NFC");
}

function cut(word: string): string {
  return word.length <= longestWord ? word : [...word].slice(0, longestWord).join("");
}

/** All texts in a value, in their order. */
export function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value) || value instanceof Set) return [...value].flatMap(textsIn);
  if (value instanceof Map) return [...value.values()].flatMap(textsIn);
  return isPlainObject(value) ? Object.values(value).flatMap(textsIn) : [];
}
