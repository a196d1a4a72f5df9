/** Long-term store in memory: sorted rows. */
import { findFirstIndex, findTextIndex } from "./find-first-index.ts";
import type {
  LongTermChange,
  LongTermLocation,
  LongTermQuery,
  LongTermReader,
  LongTermRow,
  LongTermTouch,
  RefreshResult,
} from "./rows.ts";
import { isLive, matchesQuery, sweepLimitPerWrite, toLocationText } from "./rules.ts";

/** Rows by namespace and key, for {@link MemoryStore}. */
export interface MemoryLongTerm {
  get: (...args: Parameters<LongTermReader["get"]>) => LongTermRow | undefined;
  page: (...args: Parameters<LongTermReader["page"]>) => readonly LongTermRow[];
  apply(changes: readonly LongTermChange[], at: number): void;
  refresh(touches: readonly LongTermTouch[]): readonly RefreshResult[];
  sweep(at: number, limit: number): number;
}

export function createMemoryLongTerm(): MemoryLongTerm {
  const rows = new Map<string, LongTermRow>();
  /** Sorted locations of all rows; created by the first page query. */
  let locations: string[] | undefined;
  /** Expiring rows, sorted by expiry. */
  const expiries: Expiry[] = [];

  function setRow(place: string, row: LongTermRow | undefined): void {
    const before = rows.get(place)?.expiresAt;
    const after = row?.expiresAt;
    if (row === undefined) rows.delete(place);
    else rows.set(place, row);
    if (before === after) return;
    if (before !== undefined) expiries.splice(findExpiryIndex(expiries, { at: before, location: place }), 1);
    if (after !== undefined)
      expiries.splice(findExpiryIndex(expiries, { at: after, location: place }), 0, { at: after, location: place });
  }

  function putRow(row: Omit<LongTermRow, "createdAt">): void {
    const place = toLocationText(row);
    const before = rows.get(place);
    if (before === undefined) locations?.splice(findTextIndex(locations, place), 0, place);
    const isReplaced = before !== undefined && isLive(before, row.updatedAt);
    setRow(place, { ...row, createdAt: isReplaced ? before.createdAt : row.updatedAt });
  }

  function removeRow(place: string): void {
    if (!rows.has(place)) return;
    setRow(place, undefined);
    locations?.splice(findTextIndex(locations, place), 1);
  }

  function touch({ at, expiresAt, ...place }: LongTermTouch): RefreshResult {
    const row = rows.get(toLocationText(place));
    if (row === undefined || !isLive(row, at)) return "missing";
    if (row.expiresAt !== undefined && row.expiresAt < expiresAt) setRow(toLocationText(place), { ...row, expiresAt });
    return "refreshed";
  }

  function sweep(at: number, limit: number): number {
    let swept = 0;
    for (let first = expiries[0]; first !== undefined && first.at <= at && swept < limit; first = expiries[0]) {
      removeRow(first.location);
      swept += 1;
    }
    return swept;
  }

  function get(place: LongTermLocation, at: number): LongTermRow | undefined {
    const row = rows.get(toLocationText(place));
    return row !== undefined && isLive(row, at) ? row : undefined;
  }

  function listPage(query: LongTermQuery): readonly LongTermRow[] {
    locations ??= [...rows.keys()].sort();
    const { namespace, deep, after } = query;
    const from = after === undefined || toLocationText(after) < namespace ? namespace : toLocationText(after);
    const found: LongTermRow[] = [];
    for (let index = findTextIndex(locations, from); ; index++) {
      const row = rows.get(locations[index] ?? "");
      if (row === undefined || found.length === query.limit) return found;
      if (deep ? !row.namespace.startsWith(namespace) : row.namespace !== namespace) return found;
      if (matchesQuery(row, query)) found.push(row);
    }
  }

  return {
    get,
    page: listPage,
    sweep,
    refresh: (touches) => touches.map(touch),
    apply: (changes, at) => {
      for (const change of changes) {
        if ("put" in change) putRow(change.put);
        else if ("drop" in change) removeRow(toLocationText(change.drop));
        else touch(change.touch);
      }
      sweep(at, sweepLimitPerWrite);
    },
  };
}

/** Expiry of a row. */
interface Expiry {
  readonly at: number;
  readonly location: string;
}

/** Returns the index of the first expiry ≥ the given expiry; the location breaks ties. */
function findExpiryIndex(ends: readonly Expiry[], { at, location }: Expiry): number {
  return findFirstIndex(ends, (end) => end.at < at || (end.at === at && end.location < location));
}
