/** The long-term store as it will be when some changes are made that wait for the end of their superstep. */
import type { LongTermChange, LongTermPlace, LongTermQuery, LongTermReader, LongTermRow } from "./long-term-rows.ts";
import { byPlace, isAsked, isLive, placeText } from "./long-term-rules.ts";

/** What `under` reads, with `changes` on top, as they are when it is asked. */
export function overlaid(under: LongTermReader, changes: readonly LongTermChange[]): LongTermReader {
  return {
    get: async (place, at) => {
      const changed = standing(changes).get(placeText(place));
      if (changed === undefined) return under.get(place, at);
      return changed.put !== undefined && isLive(changed.put, at) ? completed(under, changed.put, at) : undefined;
    },
    page: async (query) => {
      const changed = standing(changes);
      const isChanged = (place: LongTermPlace): boolean => changed.has(placeText(place));
      if (changed.size === 0) return under.page(query);
      const own = [...changed.values()].flatMap(({ put }) => (put !== undefined && isAsked(put, query) ? [put] : []));
      const [found, made] = await Promise.all([
        unchanged(under, query, isChanged),
        Promise.all(own.map((put) => completed(under, put, query.at))),
      ]);
      return [...found, ...made].sort(byPlace).slice(0, query.limit);
    },
  };
}

type Put = Extract<LongTermChange, { readonly put: unknown }>["put"];

/** What becomes of each row that is changed: the last put, or nothing. */
function standing(changes: readonly LongTermChange[]): ReadonlyMap<string, { readonly put: Put | undefined }> {
  const rows = new Map<string, { readonly put: Put | undefined }>();
  for (const change of changes) {
    if ("put" in change) rows.set(placeText(change.put), { put: change.put });
    else if ("drop" in change) rows.set(placeText(change.drop), { put: undefined });
  }
  return rows;
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
