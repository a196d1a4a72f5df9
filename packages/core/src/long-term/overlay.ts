/** The long-term store as it will be when some changes are made that wait for the end of their superstep. */
import type { LongTermChange, LongTermPlace, LongTermQuery, LongTermReader, LongTermRow } from "./rows.ts";
import { byPlace, isAsked, isLive, placeText } from "./rules.ts";

/** What `under` reads, with `changes` on top, as they are when it is asked. */
export function overlaid(under: LongTermReader, changes: readonly LongTermChange[]): LongTermReader {
  return {
    vectors: under.vectors,
    get: async (place, at) => {
      const { rows } = standing(changes);
      const text = placeText(place);
      if (!rows.has(text)) return under.get(place, at);
      const put = rows.get(text);
      return put !== undefined && isLive(put, at) ? completed(under, put, at) : undefined;
    },
    page: async (query) => {
      const { rows, places } = standing(changes);
      const isChanged = (place: LongTermPlace): boolean => rows.has(placeText(place));
      if (rows.size === 0) return under.page(query);
      const own = putsFor(query, rows, places);
      const [found, made] = await Promise.all([
        unchanged(under, query, isChanged),
        Promise.all(own.map((put) => completed(under, put, query.at))),
      ]);
      return [...found, ...made].sort(byPlace).slice(0, query.limit);
    },
    refresh: async (touches) => {
      const { rows } = standing(changes);
      const isHeld = (place: LongTermPlace): boolean => rows.has(placeText(place));
      const others = touches.filter((touch) => !isHeld(touch));
      const refreshed = others.length === 0 ? [] : [...(await under.refresh(others))];
      return touches.map((touch) => (isHeld(touch) ? "held" : (refreshed.shift() ?? "gone")));
    },
  };
}

type Put = Extract<LongTermChange, { readonly put: unknown }>["put"];

/** What becomes of each row that is changed: the last put, or nothing; and the places of all of them in their order. */
interface Standing {
  readonly rows: Map<string, Put | undefined>;
  readonly places: string[];
  /** So many changes are taken in. */
  seen: number;
}

/** Changes are added one by one and read in between: each is taken in once. */
const known: WeakMap<readonly LongTermChange[], Standing> = new WeakMap();

function standing(changes: readonly LongTermChange[]): Standing {
  let found = known.get(changes);
  if (found === undefined || found.seen > changes.length) {
    found = { rows: new Map(), places: [], seen: 0 };
    known.set(changes, found);
  }
  for (; found.seen < changes.length; found.seen++) takeIn(found, changes[found.seen] as LongTermChange);
  return found;
}

function takeIn({ rows, places }: Standing, change: LongTermChange): void {
  if ("touch" in change) return;
  const put = "put" in change ? change.put : undefined;
  const text = placeText("put" in change ? change.put : change.drop);
  if (!rows.has(text)) places.splice(firstFrom(places, text), 0, text);
  rows.set(text, put);
}

/** Those that a page may have, in their order: no more than fit on it. */
function putsFor(query: LongTermQuery, rows: Standing["rows"], places: readonly string[]): readonly Put[] {
  const { namespace, deep, after, limit } = query;
  const from = after === undefined || placeText(after) < namespace ? namespace : placeText(after);
  const puts: Put[] = [];
  for (let index = firstFrom(places, from); index < places.length && puts.length < limit; index++) {
    const place = places[index] as string;
    if (!(deep ? place.startsWith(namespace) : place.startsWith(`${namespace} `))) break;
    const put = rows.get(place);
    if (put !== undefined && isAsked(put, query)) puts.push(put);
  }
  return puts;
}

/** The index of the first text that is not before another. */
function firstFrom(texts: readonly string[], text: string): number {
  let [low, high] = [0, texts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((texts[middle] as string) < text) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The row that a put will leave: one that is there already keeps the time at which it came. */
async function completed(under: LongTermReader, put: Put, at: number): Promise<LongTermRow> {
  return { ...put, createdAt: (await under.get(put, at))?.createdAt ?? put.updatedAt };
}

/** A page of rows that are not changed: as many as are asked for, where there are so many. */
async function unchanged(
  under: LongTermReader,
  query: LongTermQuery,
  isChanged: (place: LongTermPlace) => boolean,
): Promise<readonly LongTermRow[]> {
  const found: LongTermRow[] = [];
  for (let { after } = query; ; ) {
    const page: readonly LongTermRow[] = await under.page({ ...query, after });
    found.push(...page.filter((row) => !isChanged(row)));
    if (page.length < query.limit || found.length >= query.limit) return found;
    after = page.at(-1);
  }
}
