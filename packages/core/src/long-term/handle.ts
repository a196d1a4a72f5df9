/** Handles on the long-term store: what users say becomes rows and changes of rows, and rows become items. */

import { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { disregardPromises } from "../base/ignore-rejections.ts";
import { deepFreeze, describeValue, isPlainObject } from "../base/json.ts";
import type {
  LongTerm,
  LongTermItem,
  LongTermNamespaces,
  LongTermPage,
  LongTermPut,
  LongTermSearch,
} from "../base/long-term.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { Codec } from "../state/codec.ts";
import { fieldOf, readField, readFilter } from "./filter.ts";
import type {
  LongTermChange,
  LongTermPlace,
  LongTermQuery,
  LongTermReader,
  LongTermRow,
  LongTermTouch,
} from "./rows.ts";
import { lastKey, namespaceIds, namespaceText } from "./rules.ts";
import { best, nearness, vectorOf } from "./vectors.ts";
import { textsIn, wantedWords, wordsIn } from "./words.ts";

/** What a handle works on. */
export interface LongTermPort {
  readonly codec: Codec;
  readonly now: () => number;
  /** Where it reads. Throws where there is nothing to read. */
  readonly reader: () => LongTermReader;
  /** Takes changes: makes them, or keeps them for later. */
  readonly change: (changes: readonly LongTermChange[]) => void | Promise<void>;
  /** Lets rows live longer that were read; tells of each whether it still was there. */
  readonly refresh: (touches: readonly LongTermTouch[]) => Promise<readonly boolean[]>;
}

const defaultLimit = 100;

/** Some three thousand years. */
const longestTtlMs = 1e14;

/** So many rows are looked at in one turn of a search that filters them. */
const lookedAtOnce = 500;

/** A handle on a namespace. The port is made when the handle is used first. */
export function longTermHandle(port: () => LongTermPort, ids: readonly string[] = []): LongTerm {
  const namespace = namespaceText(ids);

  function placeOf(key: string): LongTermPlace {
    return { namespace: own(namespace), key: checkId("key", key) };
  }

  function itemOf(row: LongTermRow, score?: number): LongTermItem {
    const { codec } = port();
    return Object.freeze({
      namespace: Object.freeze(namespaceIds(row.namespace)),
      key: row.key,
      value: deepFreeze(codec.decode(row.value)),
      createdAt: row.createdAt,
      updatedAt: row.updatedAt,
      ...(row.expiresAt === undefined ? {} : { expiresAt: row.expiresAt }),
      ...(score === undefined ? {} : { score }),
    });
  }

  /** Rows that were asked for; those that live longer when they are read do. */
  async function read(
    rows: readonly LongTermRow[],
    at: number,
    scores: readonly number[] = [],
  ): Promise<readonly LongTermItem[]> {
    const touches = rows.flatMap(({ namespace, key, refreshMs }): LongTermTouch[] =>
      refreshMs === undefined ? [] : [{ namespace, key, at, expiresAt: at + refreshMs }],
    );
    const stays = touches.length === 0 ? [] : [...(await port().refresh(touches))];
    return rows.flatMap((row, nth) => {
      if (row.refreshMs === undefined) return [itemOf(row, scores[nth])];
      // One that was swept meanwhile is over: who reads it has come too late.
      return stays.shift() === true ? [itemOf({ ...row, expiresAt: at + row.refreshMs }, scores[nth])] : [];
    });
  }

  async function found(query: LongTermQuery, fits: ((value: unknown) => boolean) | undefined) {
    const { codec, reader: reads } = port();
    const reader = reads();
    if (fits === undefined) return reader.page(query);
    const rows: LongTermRow[] = [];
    for (let { after } = query; ; ) {
      const page: readonly LongTermRow[] = await reader.page({ ...query, after, limit: lookedAtOnce });
      for (const row of page) {
        if (fits(codec.decode(row.value))) rows.push(row);
        if (rows.length === query.limit) return rows;
      }
      if (page.length < lookedAtOnce) return rows;
      after = page.at(-1);
    }
  }

  /** The rows nearest to what a text is about, each looked at in its turn. */
  async function nearest(query: LongTermQuery, fits: ((value: unknown) => boolean) | undefined, near: string) {
    const { codec, reader: reads } = port();
    const reader = reads();
    if (reader.vectors === undefined) throw withoutVectors();
    const wanted = await vectorOf(reader.vectors, near);
    const found = best<LongTermRow>(query.limit);
    for (let after: LongTermPlace | undefined; wanted !== undefined; ) {
      const page: readonly LongTermRow[] = await reader.page({ ...query, after, vectors: true, limit: lookedAtOnce });
      for (const row of page) {
        if (row.vector?.length !== wanted.length) continue;
        if (fits === undefined || fits(codec.decode(row.value))) found.offer(row, nearness(row.vector, wanted));
      }
      if (page.length < lookedAtOnce) break;
      after = page.at(-1);
    }
    return found.all();
  }

  return {
    namespace: ids,
    under: (...more) => longTermHandle(port, [...ids, ...more]),
    get: async (key) => {
      const place = placeOf(key);
      const { now, reader } = port();
      const at = now();
      const row = await reader().get(place, at);
      return row === undefined ? undefined : (await read([row], at))[0];
    },
    put: async (key, value, options = {}) => {
      const place = placeOf(key);
      checkPut(options);
      const { codec, now, reader, change } = port();
      const { vectors } = reader();
      const row = rowOf(codec, place, value, options, now());
      const about = vectors === undefined || options.index === false ? "" : textsOf(value, options.index);
      const vector = vectors === undefined || about === "" ? undefined : await vectorOf(vectors, about);
      await change([{ put: vector === undefined ? row : { ...row, vector } }]);
    },
    delete: async (key) => {
      const drop = placeOf(key);
      const { reader, change } = port();
      reader();
      await change([{ drop }]);
    },
    list: async (page = {}) => {
      checkOptions("list", page, pageNames);
      const { now, reader } = port();
      const at = now();
      const query = { namespace: own(namespace), deep: false, at, ...pageOf("list", page) };
      return read(await reader().page(query), at);
    },
    search: async (query = {}) => {
      checkOptions("search", query, searchNames);
      const { text, filter, near } = query;
      const fits = filter === undefined ? undefined : readFilter(filter);
      const words = text === undefined ? undefined : wantedWords(searchText(text));
      const page = pageOf("search", query);
      const at = port().now();
      if (near !== undefined) checkNear(near, query);
      if (words?.length === 0) return [];
      if (near !== undefined) {
        const all = await nearest({ namespace, deep: true, at, words, limit: page.limit }, fits, near);
        return read(
          all.map(({ item }) => item),
          at,
          all.map(({ score }) => score),
        );
      }
      return read(await found({ namespace, deep: true, at, words, ...page }, fits), at);
    },
    namespaces: async (which = {}) => {
      checkOptions("namespaces", which, namespacesNames);
      return namespacesOf(port(), ids, which);
    },
  };
}

const pageNames = optionNames<LongTermPage>({ after: true, limit: true });
const searchNames = optionNames<LongTermSearch>({ text: true, near: true, filter: true, after: true, limit: true });
const namespacesNames = optionNames<LongTermNamespaces>({ depth: true, after: true, limit: true });
const putNames = optionNames<LongTermPut>({ ttlMs: true, refreshOnRead: true, index: true });

/** The namespaces below, each found by a look-up: what lies inside of one is jumped over. */
async function namespacesOf(
  { now, reader }: LongTermPort,
  ids: readonly string[],
  { depth, after, limit = defaultLimit }: LongTermNamespaces,
): Promise<readonly (readonly string[])[]> {
  checkCount("the limit of namespaces", limit);
  if (depth !== undefined) checkCount("the depth of namespaces", depth);
  const deepest = depth === undefined ? undefined : ids.length + depth;
  const behind = (text: string, isWhole: boolean): LongTermPlace =>
    isWhole ? { namespace: text, key: lastKey } : { namespace: text + lastKey, key: "" };
  const found: (readonly string[])[] = [];
  const query = { namespace: namespaceText(ids), deep: true, at: now(), limit: 1 };
  let place: LongTermPlace | undefined =
    after === undefined ? undefined : behind(namespaceText(readIds(after)), after.length !== deepest);
  while (found.length < limit) {
    const [row]: readonly LongTermRow[] = await reader().page({ ...query, after: place });
    if (row === undefined) break;
    const whole = namespaceIds(row.namespace);
    const shown = Object.freeze(whole.slice(0, deepest));
    found.push(shown);
    place = behind(namespaceText(shown), deepest === undefined || shown.length < deepest);
  }
  return found;
}

function rowOf(
  codec: Codec,
  place: LongTermPlace,
  value: unknown,
  { ttlMs, refreshOnRead = false, index }: LongTermPut,
  at: number,
): Omit<LongTermRow, "createdAt"> {
  if (value === undefined)
    throw unfit(`the value of "${place.key}"`, value, "a value, or remove the item with delete(key)");
  const text = codec.encode(value, `the item "${place.key}" of the long-term store`);
  const words = index === false ? undefined : wordsIn(indexed(value, index));
  return {
    ...place,
    value: text,
    updatedAt: at,
    ...(words === undefined ? {} : { words }),
    ...(ttlMs === undefined ? {} : { expiresAt: at + ttlMs }),
    ...(ttlMs === undefined || !refreshOnRead ? {} : { refreshMs: ttlMs }),
  };
}

/** What an item is about, as its texts say. */
function textsOf(value: unknown, index: readonly string[] | undefined): string {
  return textsIn(indexed(value, index)).join("\n").trim();
}

function checkNear(near: unknown, { after }: LongTermSearch): void {
  if (typeof near !== "string" || near.trim() === "")
    throw unfit("near of search", near, "a text that says what to look for");
  if (after !== undefined) throw unfit("after of a search by nearness", after, "a larger limit: it has no pages");
}

function withoutVectors(): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: "a search asks for what is near, and the store has no embedding function",
    next: "Give the store one: sqliteStore(path, { longTerm: { embed, dimensions } })",
  });
}

function indexed(value: unknown, fields: readonly string[] | undefined): unknown {
  return fields === undefined ? value : fields.map((field) => fieldOf(value, readField(field)));
}

function checkPut(options: LongTermPut): void {
  checkOptions("put", options, putNames);
  const { ttlMs, refreshOnRead, index } = options;
  if (ttlMs !== undefined && !(Number.isInteger(ttlMs) && ttlMs >= 1 && ttlMs <= longestTtlMs))
    throw unfit("ttlMs of put", ttlMs, `a whole number of milliseconds from 1 to ${longestTtlMs}`);
  if (refreshOnRead !== undefined && typeof refreshOnRead !== "boolean")
    throw unfit("refreshOnRead of put", refreshOnRead, "true or false");
  if (refreshOnRead === true && ttlMs === undefined)
    throw unfit("refreshOnRead of put", refreshOnRead, "ttlMs with it: an item without an end needs no refreshing");
  if (index === undefined || index === false) return;
  if (!Array.isArray(index)) throw unfit("index of put", index, "a list of fields, or false");
  for (const field of index) readField(field);
}

function pageOf(what: string, { after, limit = defaultLimit }: LongTermPage): Pick<LongTermQuery, "after" | "limit"> {
  checkCount(`the limit of ${what}`, limit);
  if (after === undefined) return { limit };
  if (!isPlainObject(after) || typeof after.key !== "string")
    throw unfit(`after of ${what}`, after, "the last item of the page before");
  return { after: { namespace: namespaceText(readIds(after.namespace)), key: checkId("key", after.key) }, limit };
}

function readIds(ids: unknown): readonly string[] {
  if (Array.isArray(ids)) return ids;
  throw unfit("a namespace", ids, "a list of ids");
}

function searchText(text: unknown): string {
  if (typeof text === "string") return text;
  throw unfit("the text of search", text, 'words, such as "oslo weath*"');
}

function checkCount(what: string, count: unknown): void {
  if (!(Number.isSafeInteger(count) && (count as number) >= 1)) throw unfit(what, count, "a whole number from 1");
}

/** The namespace of an item: the root holds none. */
function own(namespace: string): string {
  if (namespace !== "") return namespace;
  throw new StatewrightError("invalid_option", {
    what: "the root of the long-term store holds no items",
    next: 'Say whose they are: longTerm.under("users", id)',
  });
}

function unfit(what: string, given: unknown, wanted: string): StatewrightError {
  disregardPromises(given);
  return new StatewrightError("invalid_option", {
    what: `${what} is ${describeValue(given)}`,
    next: `Give ${wanted}`,
  });
}
