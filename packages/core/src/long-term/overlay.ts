/** Overlay of the long-term store: reads see changes that are buffered until the end of their superstep. */
import { findTextIndex } from "./find-first-index.ts";
import type { LongTermChange, LongTermLocation, LongTermQuery, LongTermReader, LongTermRow } from "./rows.ts";
import { compareLocations, isLive, matchesQuery, toLocationText } from "./rules.ts";

/** Creates a reader of `under` with `changes` applied on top; reads see changes added later. */
export function createOverlay(under: LongTermReader, changes: readonly LongTermChange[]): LongTermReader {
  return {
    vectors: under.vectors,
    get: async (place, at) => {
      const { rows } = getOverlayState(changes);
      const text = toLocationText(place);
      if (!rows.has(text)) return under.get(place, at);
      const put = rows.get(text);
      return put !== undefined && isLive(put, at) ? completePut(under, put, at) : undefined;
    },
    page: async (query) => {
      const { rows, locations } = getOverlayState(changes);
      const isChanged = (place: LongTermLocation): boolean => rows.has(toLocationText(place));
      if (rows.size === 0) return under.page(query);
      const puts = listPuts(query, rows, locations);
      const [found, made] = await Promise.all([
        loadUnchanged(under, query, isChanged),
        Promise.all(puts.map((put) => completePut(under, put, query.at))),
      ]);
      return [...found, ...made].sort(compareLocations).slice(0, query.limit);
    },
    refresh: async (touches) => {
      const { rows } = getOverlayState(changes);
      const isPending = (place: LongTermLocation): boolean => rows.has(toLocationText(place));
      const others = touches.filter((touch) => !isPending(touch));
      const refreshed = others.length === 0 ? [] : [...(await under.refresh(others))];
      return touches.map((touch) => (isPending(touch) ? "pending" : (refreshed.shift() ?? "missing")));
    },
  };
}

type Put = Extract<LongTermChange, { readonly put: unknown }>["put"];

/** Last put of each changed row, or undefined for a deleted row; and all changed locations in sort order. */
interface OverlayState {
  readonly rows: Map<string, Put | undefined>;
  readonly locations: string[];
  /** Number of changes applied so far. */
  applied: number;
}

/** Overlay state per change list. Changes are appended between reads; each change is applied once. */
const overlayStates: WeakMap<readonly LongTermChange[], OverlayState> = new WeakMap();

function getOverlayState(changes: readonly LongTermChange[]): OverlayState {
  let found = overlayStates.get(changes);
  if (found === undefined || found.applied > changes.length) {
    found = { rows: new Map(), locations: [], applied: 0 };
    overlayStates.set(changes, found);
  }
  for (; found.applied < changes.length; found.applied++) applyChange(found, changes[found.applied] as LongTermChange);
  return found;
}

function applyChange({ rows, locations }: OverlayState, change: LongTermChange): void {
  if ("touch" in change) return;
  const put = "put" in change ? change.put : undefined;
  const text = toLocationText("put" in change ? change.put : change.drop);
  if (!rows.has(text)) locations.splice(findTextIndex(locations, text), 0, text);
  rows.set(text, put);
}

/** Lists the puts of a page in order, at most `limit`. */
function listPuts(query: LongTermQuery, rows: OverlayState["rows"], places: readonly string[]): readonly Put[] {
  const { namespace, deep, after, limit } = query;
  const from = after === undefined || toLocationText(after) < namespace ? namespace : toLocationText(after);
  const puts: Put[] = [];
  for (let index = findTextIndex(places, from); index < places.length && puts.length < limit; index++) {
    const location = places[index] as string;
    if (!(deep ? location.startsWith(namespace) : location.startsWith(`${namespace} `))) break;
    const put = rows.get(location);
    if (put !== undefined && matchesQuery(put, query)) puts.push(put);
  }
  return puts;
}

/** Completes a put to a row; an existing row retains its `createdAt`. */
async function completePut(under: LongTermReader, put: Put, at: number): Promise<LongTermRow> {
  return { ...put, createdAt: (await under.get(put, at))?.createdAt ?? put.updatedAt };
}

/** Loads a page of unchanged rows: `limit` rows when available. */
async function loadUnchanged(
  under: LongTermReader,
  query: LongTermQuery,
  isChanged: (place: LongTermLocation) => boolean,
): Promise<readonly LongTermRow[]> {
  const found: LongTermRow[] = [];
  for (let { after } = query; ; ) {
    const page: readonly LongTermRow[] = await under.page({ ...query, after });
    found.push(...page.filter((row) => !isChanged(row)));
    if (page.length < query.limit || found.length >= query.limit) return found;
    after = page.at(-1);
  }
}
