/** The rules that every long-term store shares. For those who write a store. */

import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { describeValue, isPlainObject } from "../base/json.ts";
import type { LongTermPlace, LongTermQuery, LongTermRow, LongTermWord } from "./rows.ts";
import type { LongTermVectors } from "./vectors.ts";

/** So many rows whose end has come are removed with each write. */
export const sweptWithWrite = 32;

/** A namespace as rows hold it: `users/u1/`. Throws `invalid_id`. */
export function namespaceText(ids: readonly string[]): string {
  return ids.map((id) => `${checkId("namespace", id)}/`).join("");
}

/** The ids of a namespace as rows hold it. */
export function namespaceIds(text: string): readonly string[] {
  return text.split("/").slice(0, -1);
}

/** The first text behind all namespaces that begin with this one. No id has a character behind "~". */
export function endOfNamespace(text: string): string {
  return text === "" ? "~" : `${text.slice(0, -1)}0`;
}

/** What sorts behind every key of a namespace: a page after it begins with the next namespace. */
export const lastKey = "~";

/** A place as one text. What stands between sorts before every character of ids, so that texts have the order of places. */
export function placeText({ namespace, key }: LongTermPlace): string {
  return `${namespace} ${key}`;
}

/** The order of rows: by namespace, then by key. Ids sort alike in UTF-8 and UTF-16. */
export function byPlace(one: LongTermPlace, other: LongTermPlace): number {
  const [left, right] = [placeText(one), placeText(other)];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Whether a row is there at a time. */
export function isLive({ expiresAt }: Pick<LongTermRow, "expiresAt">, at: number): boolean {
  return expiresAt === undefined || expiresAt > at;
}

/** Whether a row belongs to what a query asks for, wherever its page ends. */
export function isAsked(
  row: Omit<LongTermRow, "createdAt">,
  { namespace, deep, at, after, words }: LongTermQuery,
): boolean {
  return (
    (deep ? row.namespace.startsWith(namespace) : row.namespace === namespace) &&
    isLive(row, at) &&
    (after === undefined || byPlace(row, after) > 0) &&
    (words === undefined || hasWords(row.words, words))
  );
}

/** Whether all that is looked for stands in the words of a row. */
export function hasWords(text: string | undefined, wanted: readonly LongTermWord[]): boolean {
  const words = text === undefined ? [] : text.split(" ");
  return wanted.every(({ word, isPrefix }) => words.some((each) => (isPrefix ? each.startsWith(word) : each === word)));
}

/** So many numbers a vector may have. */
const mostDimensions = 65_536;

/** Throws `invalid_option` for what cannot make vectors. */
export function checkVectors(owner: string, given: LongTermVectors | undefined): void {
  if (given === undefined) return;
  const { embed, dimensions } = isPlainObject(given) ? (given as Partial<LongTermVectors>) : {};
  const names = isPlainObject(given) ? Object.keys(given) : [];
  const isCount =
    Number.isSafeInteger(dimensions) && (dimensions as number) >= 1 && (dimensions as number) <= mostDimensions;
  if (typeof embed === "function" && isCount && names.every((name) => name === "embed" || name === "dimensions"))
    return;
  throw new StatewrightError("invalid_option", {
    what: `longTerm of ${owner} is ${describeValue(given)}`,
    next: `Give longTerm: { embed, dimensions }: a function of texts, and a whole number from 1 to ${mostDimensions}`,
  });
}
