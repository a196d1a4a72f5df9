/** Handles of the long-term store: convert user values to rows and row changes, and rows to items. */

import type { StatewrightError } from "../base/errors.ts";
import { checkId } from "../base/ids.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { deepFreeze, isPlainObject } from "../base/json.ts";
import type {
  LongTerm,
  LongTermItem,
  LongTermNamespaces,
  LongTermPage,
  LongTermPut,
  LongTermSearch,
} from "../base/long-term.ts";
import { checkCount, checkFlag, checkOptions, listOptionNames } from "../base/options.ts";
import type { Codec } from "../state/codec.ts";
import { getField, parseField, parseFilter } from "./filter.ts";
import type {
  LongTermChange,
  LongTermLocation,
  LongTermQuery,
  LongTermReader,
  LongTermRow,
  LongTermTouch,
} from "./rows.ts";
import { lastKey, parseNamespaceText, toNamespaceText } from "./rules.ts";
import { computeSimilarity, createTopList, embedText } from "./vectors.ts";
import { extractWords, listStrings, parseSearchWords } from "./words.ts";

/** Dependencies of a long-term handle. */
export interface LongTermPort {
  readonly codec: Codec;
  readonly now: () => number;
  /** Returns the reader of the rows. Throws without a store. */
  readonly reader: () => LongTermReader;
  /** Applies changes, or buffers changes until the superstep commits. */
  readonly change: (changes: readonly LongTermChange[]) => void | Promise<void>;
  /** Removes the secrets of a run from a value before it is indexed and saved; absent outside of runs. */
  readonly redact?: <Value>(value: Value) => Value;
  /** Extends the expiry of rows that were read; returns for each row true if the row still existed. */
  readonly refresh: (touches: readonly LongTermTouch[]) => Promise<readonly boolean[]>;
}

const defaultLimit = 100;

/** About three thousand years. */
const maxTtlMs = 1e14;

/** Rows per page of a filtered search. */
const searchPageSize = 500;

/** Creates a handle of a namespace. The port is created on first use of the handle. */
export function createLongTermHandle(port: () => LongTermPort, ids: readonly string[] = []): LongTerm {
  const namespace = toNamespaceText(ids);
  const toLocation = (key: string): LongTermLocation => ({
    namespace: requireNamespace(namespace),
    key: checkId("key", key),
  });
  return {
    namespace: ids,
    under: (...more) => createLongTermHandle(port, [...ids, ...more]),
    get: async (key) => {
      const location = toLocation(key);
      return getItem(port(), location);
    },
    put: async (key, value, options = {}) => {
      const location = toLocation(key);
      checkPut(options);
      await putItem(port(), location, value, options);
    },
    delete: async (key) => {
      const drop = toLocation(key);
      const { reader, change } = port();
      reader();
      await change([{ drop }]);
    },
    list: async (page = {}) => {
      checkOptions("list", page, pageNames);
      const opened = port();
      const at = opened.now();
      const query = { namespace: requireNamespace(namespace), deep: false, at, ...parsePage("list", page) };
      return toRefreshedItems(opened, await opened.reader().page(query), at);
    },
    search: async (query = {}) => {
      checkOptions("search", query, searchNames);
      return searchItems(port, namespace, query);
    },
    namespaces: async (which = {}) => {
      checkOptions("namespaces", which, namespacesNames);
      return listNamespaces(port(), ids, which);
    },
  };
}

async function getItem(port: LongTermPort, location: LongTermLocation): Promise<LongTermItem | undefined> {
  const at = port.now();
  const row = await port.reader().get(location, at);
  return row === undefined ? undefined : (await toRefreshedItems(port, [row], at))[0];
}

async function putItem(
  { codec, now, reader, change, redact }: LongTermPort,
  location: LongTermLocation,
  given: unknown,
  options: LongTermPut,
): Promise<void> {
  const { vectors } = reader();
  const value = redact === undefined ? given : redact(given);
  const row = toRow(codec, location, options, { value, at: now() });
  const text = vectors === undefined || options.index === false ? "" : getIndexedText(value, options.index);
  const vector = vectors === undefined || text === "" ? undefined : await embedText(vectors, text);
  await change([{ put: vector === undefined ? row : { ...row, vector } }]);
}

type IsMatch = ((value: unknown) => boolean) | undefined;

async function searchItems(
  getPort: () => LongTermPort,
  namespace: string,
  query: LongTermSearch,
): Promise<readonly LongTermItem[]> {
  const { text, filter, near } = query;
  const isMatch = filter === undefined ? undefined : parseFilter(filter);
  const words = text === undefined ? undefined : parseSearchWords(parseSearchText(text));
  const page = parsePage("search", query);
  const port = getPort();
  const at = port.now();
  if (near !== undefined) checkNear(near, query);
  if (words?.length === 0) return [];
  const search = { namespace, deep: true, at, words, ...page };
  if (near === undefined) return toRefreshedItems(port, await findRows(port, search, isMatch), at);
  const nearest = await findNearest(port, search, isMatch, near);
  return toRefreshedItems(
    port,
    nearest.map(({ item }) => item),
    at,
    nearest.map(({ score }) => score),
  );
}

async function findRows(
  { codec, reader: getReader }: LongTermPort,
  query: LongTermQuery,
  isMatch: IsMatch,
): Promise<readonly LongTermRow[]> {
  const reader = getReader();
  if (isMatch === undefined) return reader.page(query);
  const rows: LongTermRow[] = [];
  for (let { after } = query; ; ) {
    const page: readonly LongTermRow[] = await reader.page({ ...query, after, limit: searchPageSize });
    for (const row of page) {
      if (isMatch(codec.decode(row.value))) rows.push(row);
      if (rows.length === query.limit) return rows;
    }
    if (page.length < searchPageSize) return rows;
    after = page.at(-1);
  }
}

/** Finds the rows nearest to a text, scanning all vectors of the namespace. */
async function findNearest(
  { codec, reader: getReader }: LongTermPort,
  query: LongTermQuery,
  isMatch: IsMatch,
  near: string,
): Promise<readonly { readonly item: LongTermRow; readonly score: number }[]> {
  const reader = getReader();
  if (reader.vectors === undefined) throw createMissingEmbedError();
  const vector = await embedText(reader.vectors, near);
  const top = createTopList<LongTermRow>(query.limit);
  for (let after: LongTermLocation | undefined; vector !== undefined; ) {
    const page: readonly LongTermRow[] = await reader.page({ ...query, after, vectors: true, limit: searchPageSize });
    for (const row of page) {
      if (row.vector?.length !== vector.length) continue;
      if (isMatch === undefined || isMatch(codec.decode(row.value)))
        top.offer(row, computeSimilarity(row.vector, vector));
    }
    if (page.length < searchPageSize) break;
    after = page.at(-1);
  }
  return top.list();
}

/** Converts rows to items and extends the expiry of rows with `refreshOnRead`. */
async function toRefreshedItems(
  port: LongTermPort,
  rows: readonly LongTermRow[],
  at: number,
  scores: readonly number[] = [],
): Promise<readonly LongTermItem[]> {
  const touches = rows.flatMap(({ namespace, key, refreshMs }): LongTermTouch[] =>
    refreshMs === undefined ? [] : [{ namespace, key, at, expiresAt: at + refreshMs }],
  );
  const refreshed = touches.length === 0 ? [] : [...(await port.refresh(touches))];
  return rows.flatMap((row, index) => {
    if (row.refreshMs === undefined) return [toItem(port.codec, row, scores[index])];
    // Deleted by a concurrent sweep: treat as expired.
    return refreshed.shift() === true
      ? [toItem(port.codec, { ...row, expiresAt: at + row.refreshMs }, scores[index])]
      : [];
  });
}

function toItem(codec: Codec, row: LongTermRow, score?: number): LongTermItem {
  return Object.freeze({
    namespace: Object.freeze(parseNamespaceText(row.namespace)),
    key: row.key,
    value: deepFreeze(codec.decode(row.value)),
    createdAt: row.createdAt,
    updatedAt: row.updatedAt,
    ...(row.expiresAt === undefined ? {} : { expiresAt: row.expiresAt }),
    ...(score === undefined ? {} : { score }),
  });
}

const pageNames = listOptionNames<LongTermPage>({ after: true, limit: true });
const searchNames = listOptionNames<LongTermSearch>({ text: true, near: true, filter: true, after: true, limit: true });
const namespacesNames = listOptionNames<LongTermNamespaces>({ depth: true, after: true, limit: true });
const putNames = listOptionNames<LongTermPut>({ ttlMs: true, refreshOnRead: true, index: true });

/** Lists the child namespaces, a single index look-up each; skips the items inside a listed namespace. */
async function listNamespaces(
  { now, reader }: LongTermPort,
  ids: readonly string[],
  { depth, after, limit = defaultLimit }: LongTermNamespaces,
): Promise<readonly (readonly string[])[]> {
  checkCount("namespaces", { limit, depth });
  const maxDepth = depth === undefined ? undefined : ids.length + depth;
  const toCursor = (text: string, { includesChildren }: { readonly includesChildren: boolean }): LongTermLocation =>
    includesChildren ? { namespace: text, key: lastKey } : { namespace: text + lastKey, key: "" };
  const found: (readonly string[])[] = [];
  const query = { namespace: toNamespaceText(ids), deep: true, at: now(), limit: 1 };
  let cursor: LongTermLocation | undefined =
    after === undefined
      ? undefined
      : toCursor(toNamespaceText(parseIds(after)), { includesChildren: after.length !== maxDepth });
  while (found.length < limit) {
    const [row]: readonly LongTermRow[] = await reader().page({ ...query, after: cursor });
    if (row === undefined) break;
    const segments = parseNamespaceText(row.namespace);
    const shown = Object.freeze(segments.slice(0, maxDepth));
    found.push(shown);
    cursor = toCursor(toNamespaceText(shown), { includesChildren: maxDepth === undefined || shown.length < maxDepth });
  }
  return found;
}

function toRow(
  codec: Codec,
  location: LongTermLocation,
  { ttlMs, refreshOnRead = false, index }: LongTermPut,
  { value, at }: { readonly value: unknown; readonly at: number },
): Omit<LongTermRow, "createdAt"> {
  if (value === undefined)
    throw invalidOption({
      where: `put of "${location.key}"`,
      expected: "a value",
      got: value,
      fix: "Pass a value, or remove the item with delete(key)",
    });
  const text = codec.encode(value, `the item "${location.key}" of the long-term store`);
  const words = index === false ? undefined : extractWords(selectFields(value, index));
  return {
    ...location,
    value: text,
    updatedAt: at,
    ...(words === undefined ? {} : { words }),
    ...(ttlMs === undefined ? {} : { expiresAt: at + ttlMs }),
    ...(ttlMs === undefined || !refreshOnRead ? {} : { refreshMs: ttlMs }),
  };
}

/** Joins the indexed strings of an item for the embedding. */
function getIndexedText(value: unknown, index: readonly string[] | undefined): string {
  return listStrings(selectFields(value, index)).join("\n").trim();
}

function checkNear(near: unknown, { after }: LongTermSearch): void {
  if (typeof near !== "string" || near.trim() === "")
    throw invalidOption({ where: "search", option: "near", expected: "a non-empty string to search for", got: near });
  if (after !== undefined)
    throw invalidOption({
      where: "search",
      option: "after",
      expected: "absent, because a search with `near` has no pages",
      got: after,
      fix: "Pass a larger limit",
    });
}

function createMissingEmbedError(): StatewrightError {
  return invalidOption({
    where: "search",
    option: "near",
    expected: "absent, because the store has no embedding function",
    found: "a string",
    fix: "Pass an embedding function to the store: sqliteStore(path, { longTerm: { embed, dimensions } })",
  });
}

function selectFields(value: unknown, fields: readonly string[] | undefined): unknown {
  return fields === undefined ? value : fields.map((field) => getField(value, parseField(field)));
}

function checkPut(options: LongTermPut): void {
  checkOptions("put", options, putNames);
  const { ttlMs, refreshOnRead, index } = options;
  checkCount("put", { ttlMs }, 1, maxTtlMs);
  if (refreshOnRead !== undefined) checkFlag("put", { refreshOnRead });
  if (refreshOnRead === true && ttlMs === undefined)
    throw invalidOption({
      where: "put",
      option: "ttlMs",
      expected: "set, because an item without an expiry cannot be refreshed",
      got: ttlMs,
      fix: "Pass ttlMs as well as refreshOnRead",
    });
  if (index === undefined || index === false) return;
  if (!Array.isArray(index))
    throw invalidOption({ where: "put", option: "index", expected: "a list of fields, or false", got: index });
  for (const field of index) parseField(field);
}

function parsePage(
  where: string,
  { after, limit = defaultLimit }: LongTermPage,
): Pick<LongTermQuery, "after" | "limit"> {
  checkCount(where, { limit });
  if (after === undefined) return { limit };
  if (!isPlainObject(after) || typeof after.key !== "string")
    throw invalidOption({ where, option: "after", expected: "the last item of the previous page", got: after });
  return { after: { namespace: toNamespaceText(parseIds(after.namespace)), key: checkId("key", after.key) }, limit };
}

function parseIds(ids: unknown): readonly string[] {
  if (Array.isArray(ids)) return ids;
  throw invalidOption({ where: "a namespace of the long-term store", expected: "a list of ids", got: ids });
}

function parseSearchText(text: unknown): string {
  if (typeof text === "string") return text;
  throw invalidOption({ where: "search", option: "text", expected: 'words, such as "oslo weath*"', got: text });
}

/** Returns the namespace of an item. Throws `invalid_option` for the root, which holds no items. */
function requireNamespace(namespace: string): string {
  if (namespace !== "") return namespace;
  throw invalidOption({
    where: "long-term store",
    expected: "a namespace",
    found: "the root, which holds no items",
    fix: 'Use a namespace: longTerm.under("users", id)',
  });
}
