/** The long-term store in memory: rows in their order. */
import type {
  LongTermChange,
  LongTermPlace,
  LongTermQuery,
  LongTermReader,
  LongTermRow,
  LongTermTouch,
  Refreshed,
} from "./rows.ts";
import { isAsked, isLive, placeText, sweptWithWrite } from "./rules.ts";

/** Rows by namespace and key, for {@link MemoryStore}. */
export interface MemoryLongTerm {
  get: (...given: Parameters<LongTermReader["get"]>) => LongTermRow | undefined;
  page: (...given: Parameters<LongTermReader["page"]>) => readonly LongTermRow[];
  apply(changes: readonly LongTermChange[], at: number): void;
  refresh(touches: readonly LongTermTouch[]): readonly Refreshed[];
  sweep(at: number, limit: number): number;
}

export function memoryLongTerm(): MemoryLongTerm {
  const rows = new Map<string, LongTermRow>();
  /** The places of all rows in their order: made when a page is asked for first. */
  let places: string[] | undefined;
  /** The rows that end, by their ends. */
  const ends: End[] = [];

  function set(place: string, row: LongTermRow | undefined): void {
    const before = rows.get(place)?.expiresAt;
    const after = row?.expiresAt;
    if (row === undefined) rows.delete(place);
    else rows.set(place, row);
    if (before === after) return;
    if (before !== undefined) ends.splice(firstEnd(ends, { at: before, place }), 1);
    if (after !== undefined) ends.splice(firstEnd(ends, { at: after, place }), 0, { at: after, place });
  }

  function put(row: Omit<LongTermRow, "createdAt">): void {
    const place = placeText(row);
    const before = rows.get(place);
    if (before === undefined) places?.splice(firstFrom(places, place), 0, place);
    const stays = before !== undefined && isLive(before, row.updatedAt);
    set(place, { ...row, createdAt: stays ? before.createdAt : row.updatedAt });
  }

  function remove(place: string): void {
    if (!rows.has(place)) return;
    set(place, undefined);
    places?.splice(firstFrom(places, place), 1);
  }

  function touch({ at, expiresAt, ...place }: LongTermTouch): Refreshed {
    const row = rows.get(placeText(place));
    if (row === undefined || !isLive(row, at)) return "gone";
    if (row.expiresAt !== undefined && row.expiresAt < expiresAt) set(placeText(place), { ...row, expiresAt });
    return "kept";
  }

  function sweep(at: number, limit: number): number {
    let swept = 0;
    for (let first = ends[0]; first !== undefined && first.at <= at && swept < limit; first = ends[0]) {
      remove(first.place);
      swept += 1;
    }
    return swept;
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
    refresh: (touches) => touches.map(touch),
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

/** When a row ends. */
interface End {
  readonly at: number;
  readonly place: string;
}

/** The index of the first end that is not before another; of those at one time the place decides. */
function firstEnd(ends: readonly End[], { at, place }: End): number {
  return firstOf(ends, (end) => end.at < at || (end.at === at && end.place < place));
}

/** The index of the first text that is not before `text`. */
function firstFrom(texts: readonly string[], text: string): number {
  return firstOf(texts, (each) => each < text);
}

/** The index of the first item that is not before what is looked for, in a list that has an order. */
function firstOf<Item>(items: readonly Item[], isBefore: (item: Item) => boolean): number {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBefore(items[middle] as Item)) low = middle + 1;
    else high = middle;
  }
  return low;
}
