/** Rules shared by all long-term stores, for authors of stores. */

import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { isPlainObject } from "../base/json.ts";
import type { LongTermLocation, LongTermQuery, LongTermRow, LongTermWord } from "./rows.ts";
import type { LongTermVectors } from "./vectors.ts";

/** Number of expired rows removed with each write. */
export const sweepLimitPerWrite = 32;

/** Encodes a namespace for rows: `users/u1/`. Throws `invalid_id`. */
export function toNamespaceText(ids: readonly string[]): string {
  return ids.map((id) => `${checkId("namespace", id)}/`).join("");
}

/** Decodes the namespace of a row into its ids. */
export function parseNamespaceText(text: string): readonly string[] {
  return text.split("/").slice(0, -1);
}

/** Returns the first string after all namespaces with this prefix. No id contains a character after "~". */
export function getNamespaceEnd(text: string): string {
  return text === "" ? "~" : `${text.slice(0, -1)}0`;
}

/** Sorts after every key of a namespace: a page after this key starts with the next namespace. */
export const lastKey = "~";

/**
 * Encodes a location as a single string. The separator sorts before every id character, so that strings sort like
 * locations.
 */
export function toLocationText({ namespace, key }: LongTermLocation): string {
  return `${namespace} ${key}`;
}

/** Compares rows by namespace, then by key. Ids sort alike in UTF-8 and UTF-16. */
export function compareLocations(one: LongTermLocation, other: LongTermLocation): number {
  const [left, right] = [toLocationText(one), toLocationText(other)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Returns true if a row is not expired at a time. */
export function isLive({ expiresAt }: Pick<LongTermRow, "expiresAt">, at: number): boolean {
  return expiresAt === undefined || expiresAt > at;
}

/** Returns true if a row matches a query, ignoring the limit. */
export function matchesQuery(
  row: Omit<LongTermRow, "createdAt">,
  { namespace, deep, at, after, words }: LongTermQuery,
): boolean {
  return (
    (deep ? row.namespace.startsWith(namespace) : row.namespace === namespace) &&
    isLive(row, at) &&
    (after === undefined || compareLocations(row, after) > 0) &&
    (words === undefined || hasWords(row.words, words))
  );
}

/** Returns true if all search words occur in the words of a row. */
export function hasWords(text: string | undefined, searchWords: readonly LongTermWord[]): boolean {
  const words = text === undefined ? [] : text.split(" ");
  return searchWords.every(({ word, isPrefix }) =>
    words.some((each) => (isPrefix ? each.startsWith(word) : each === word)),
  );
}

/** Maximum number of dimensions of a vector. */
const maxDimensions = 65_536;

/** Throws `invalid_option` for invalid embedding options. */
export function checkVectors(owner: string, vectors: LongTermVectors | undefined): void {
  if (vectors === undefined) return;
  const { embed, dimensions } = isPlainObject(vectors) ? (vectors as Partial<LongTermVectors>) : {};
  const names = isPlainObject(vectors) ? Object.keys(vectors) : [];
  const isCount =
    Number.isSafeInteger(dimensions) && (dimensions as number) >= 1 && (dimensions as number) <= maxDimensions;
  if (typeof embed === "function" && isCount && names.every((name) => name === "embed" || name === "dimensions"))
    return;
  throw invalidOption({
    where: owner,
    option: "longTerm",
    expected: `{ embed, dimensions } with a function of strings and an integer from 1 to ${maxDimensions}`,
    got: vectors,
  });
}
