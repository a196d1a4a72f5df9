/** The long-term store in memory: rows in their order. */
import type { LongTermChange, LongTermPlace, LongTermQuery, LongTermReader, LongTermRow } from "./long-term-rows.ts";
import { isAsked, isLive, placeText, sweptWithWrite } from "./long-term-rules.ts";

/** Rows by namespace and key, for {@link MemoryStore}. */
export interface MemoryLongTerm {
  get: (...given: Parameters<LongTermReader["get"]>) => LongTermRow | undefined;
  page: (...given: Parameters<LongTermReader["page"]>) => readonly LongTermRow[];
  apply(changes: readonly LongTermChange[], at: number): void;
  sweep(at: number, limit: number): number;
}

export function memoryLongTerm(): MemoryLongTerm {
  const rows = new Map<string, LongTermRow>();
  /** The places of all rows in their order: made when a page is asked for first. */
  let places: string[] | undefined;
  /** No row ends before. */
  let firstEnd = Number.POSITIVE_INFINITY;

  function put(row: Omit<LongTermRow, "createdAt">): void {
    const place = placeText(row);
    const before = rows.get(place);
    if (before === undefined) places?.splice(firstFrom(places, place), 0, place);
    const stays = before !== undefined && isLive(before, row.updatedAt);
    rows.set(place, { ...row, createdAt: stays ? before.createdAt : row.updatedAt });
    firstEnd = Math.min(firstEnd, row.expiresAt ?? firstEnd);
  }

  function remove(place: string): void {
    if (rows.delete(place)) places?.splice(firstFrom(places, place), 1);
  }

  function touch({ at, expiresAt, ...place }: Extract<LongTermChange, { readonly touch: unknown }>["touch"]): void {
    const row = rows.get(placeText(place));
    if (row?.expiresAt === undefined || !isLive(row, at) || row.expiresAt >= expiresAt) return;
    rows.set(placeText(place), { ...row, expiresAt });
  }

  function sweep(at: number, limit: number): number {
    if (at < firstEnd) return 0;
    const over = [...rows].filter(([, row]) => !isLive(row, at));
    const going = over.slice(0, limit);
    for (const [place] of going) remove(place);
    firstEnd = Number.POSITIVE_INFINITY;
    for (const { expiresAt } of rows.values()) firstEnd = Math.min(firstEnd, expiresAt ?? firstEnd);
    return going.length;
  }

  function get(place: LongTermPlace, at: number): LongTermRow | undefined {
    const row = rows.get(placeText(place));
    return row !== undefined && isLive(row, at) ? row : undefined;
  }

  function page(query: LongTermQuery): readonly LongTermRow[] {
    places ??= [...rows.keys()].sort();
    const { namespace, deep, after } = query;
    const from = after === undefined || placeText(after) < namespace ? namespace : placeText(after);
    const found: LongTermRow[] = [];
    for (let index = firstFrom(places, from); ; index++) {
      const row = rows.get(places[index] ?? "");
      if (row === undefined || found.length === query.limit) return found;
      if (deep ? !row.namespace.startsWith(namespace) : row.namespace !== namespace) return found;
      if (isAsked(row, query)) found.push(row);
    }
  }

  return {
    get,
    page,
    sweep,
    apply: (changes, at) => {
      for (const change of changes) {
        if ("put" in change) put(change.put);
        else if ("drop" in change) remove(placeText(change.drop));
        else touch(change.touch);
      }
      sweep(at, sweptWithWrite);
    },
  };
}

/** The index of the first text that is not before `text`. */
function firstFrom(texts: readonly string[], text: string): number {
  let [low, high] = [0, texts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((texts[middle] ?? "") < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
