/**
 * The long-term store in the file. A row is found by its namespace and key, a page is a range of that index, and words are
 * found by an index of SQLite's FTS5, which holds words only: the texts themselves stand in the rows alone.
 *
 * The index has the words of a row once for each namespace that it lies in, so that a search costs what its own namespace
 * has of them, however many others have the same. Nothing of this is prepared before it is first used.
 */
import { crc32 } from "node:zlib";
import {
  fingerprint,
  type LongTermChange,
  type LongTermPlace,
  type LongTermQuery,
  type LongTermRow,
  type LongTermTouch,
  type LongTermWord,
  longTermRules,
  type Refreshed,
  StatewrightError,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { NamespaceSeals, Payload, Vault } from "../encryption/cipher.ts";
import { corrupt } from "../file/store-errors.ts";

/** To be asked inside a transaction. */
export interface LongTermTable {
  get(place: LongTermPlace, at: number): LongTermRow | undefined;
  page(query: LongTermQuery): readonly LongTermRow[];
  apply(changes: readonly LongTermChange[], at: number): void;
  sweep(at: number, limit: number): number;
  refresh(touches: readonly LongTermTouch[]): readonly Refreshed[];
  /** Look at some rows after `after`, by their keys in the file; gives the last of them, absent behind the end. */
  check(after: number, limit: number, fault: (error: unknown) => void): number | undefined;
  /** Seal some rows that are not sealed with the newest key; gives how many were, and the last that was looked at. */
  seal(after: number, limit: number): { readonly sealed: number; readonly last: number | undefined };
  /** Seal all rows of a plain file, and forget their words. */
  sealAll(vault: Vault): void;
}

interface Columns {
  readonly key: number;
  readonly namespace: string;
  readonly id: string;
  readonly created: number;
  readonly updated: number;
  readonly expires: number | null;
  readonly refresh: number | null;
  readonly words: string | null;
  readonly sum: number;
  readonly value: Payload;
  /** NULL where nobody asked for it. */
  readonly vector: Payload | null;
}

const columns = "l.key, l.namespace, l.id, l.created, l.updated, l.expires, l.refresh, l.words, l.sum, l.value";
/** Vectors are large: only who needs them reads them. */
const select: string = "SELECT " + columns + ", NULL AS vector FROM long_term l";
const selectWhole: string = "SELECT " + columns + ", l.vector FROM long_term l";
const isLive = "(l.expires IS NULL OR l.expires > @at)";
const inRange = "(l.namespace, l.id) > (@from, @after) AND l.namespace < @end AND " + isLive;
const ofPage = inRange + " ORDER BY l.namespace, l.id LIMIT @limit";

const ofWords =
  " FROM long_term_words w CROSS JOIN long_term l ON l.key = w.rowid WHERE w.long_term_words MATCH @words AND " +
  ofPage;

/** What is asked for: each is found by an index. */
export const longTermQueries: Readonly<
  Record<"get" | "page" | "wholePage" | "search" | "wholeSearch" | "over", string>
> = {
  get: select + " WHERE l.namespace = @namespace AND l.id = @id AND " + isLive,
  page: select + " WHERE " + ofPage,
  wholePage: selectWhole + " WHERE " + ofPage,
  search: "SELECT " + columns + ", NULL AS vector" + ofWords,
  wholeSearch: "SELECT " + columns + ", l.vector" + ofWords,
  over: select + " WHERE l.expires <= ? ORDER BY l.expires LIMIT ?",
};

interface Range {
  readonly from: string;
  readonly after: string;
  readonly end: string;
  readonly at: number;
  readonly limit: number;
}

export function createLongTerm(db: Database, vault: Vault | undefined): LongTermTable {
  const prepared = once(() => prepare(db));

  /** Seals of namespaces, for as long as one piece of work goes on. */
  function sealsOf(from: Vault | undefined): (namespace: string) => NamespaceSeals | undefined {
    const known = new Map<string, NamespaceSeals>();
    return (namespace) => {
      if (from === undefined) return undefined;
      const seals = known.get(namespace) ?? from.namespace(namespace);
      known.set(namespace, seals);
      return seals;
    };
  }

  /** The row of columns that are what was written. Throws `store_corrupt`, `missing_key`. */
  function rowOf(found: Columns, seals: NamespaceSeals | undefined): LongTermRow {
    const { namespace, id: key, words, expires, refresh, created: createdAt, updated: updatedAt } = found;
    const value = textOf(found, seals);
    const vector = found.vector === null ? undefined : vectorIn(found, found.vector, seals);
    const row: LongTermRow = {
      ...{ namespace, key, value, createdAt, updatedAt },
      ...(words === null ? {} : { words }),
      ...(vector === undefined ? {} : { vector }),
      ...(expires === null ? {} : { expiresAt: expires }),
      ...(refresh === null ? {} : { refreshMs: refresh }),
    };
    if (sumOf(row, seals) === found.sum) return row;
    throw unlike(found);
  }

  function rowsOf(found: readonly Columns[]): readonly LongTermRow[] {
    const seals = sealsOf(vault);
    return found.map((each) => rowOf(each, seals(each.namespace)));
  }

  /** Write a row in place of what is there. Words are kept where nothing is sealed. */
  function write(given: LongTermRow, before: Columns | undefined, seals: NamespaceSeals | undefined): void {
    const { insert, update, forget, index } = prepared();
    const { words: _, ...bare } = given;
    const row: LongTermRow = seals === undefined ? given : bare;
    const { namespace, key, value, createdAt, updatedAt, expiresAt = null, refreshMs = null, words = null } = row;
    const payload = seals === undefined ? value : seals.seal(value, placeOf(row));
    const vector = row.vector === undefined ? null : vectorPayload(row.vector, placeOf(row), seals);
    const values = [createdAt, updatedAt, expiresAt, refreshMs, words, sumOf(row, seals), payload, vector] as const;
    const at = before?.key ?? Number(insert.run(namespace, key, ...values).lastInsertRowid);
    if (before !== undefined) update.run(...values, at);
    const known = before?.words ?? null;
    if (known === words) return;
    if (known !== null) forget.run(at, indexed(namespace, known));
    if (words !== null) index.run(at, indexed(namespace, words));
  }

  function remove({ key, namespace, words }: Columns): void {
    const { drop, forget } = prepared();
    if (words !== null) forget.run(key, indexed(namespace, words));
    drop.run(key);
  }

  function put(row: Omit<LongTermRow, "createdAt">, seals: NamespaceSeals | undefined): void {
    const before = prepared().find.get(row.namespace, row.key);
    const stays = before !== undefined && (before.expires === null || before.expires > row.updatedAt);
    write({ ...row, createdAt: stays ? before.created : row.updatedAt }, before, seals);
  }

  function touch({ at, expiresAt, namespace, key }: LongTermTouch, seals: NamespaceSeals | undefined): Refreshed {
    const found = prepared().find.get(namespace, key);
    if (found === undefined || (found.expires !== null && found.expires <= at)) return "gone";
    if (found.expires !== null && found.expires < expiresAt) write({ ...rowOf(found, seals), expiresAt }, found, seals);
    return "kept";
  }

  function sweep(at: number, limit: number): number {
    const over = prepared().over.all(at, limit);
    for (const row of over) remove(row);
    return over.length;
  }

  return {
    get: ({ namespace, key }, at) => rowsOf(prepared().get.all({ namespace, id: key, at }))[0],
    page: ({ namespace, deep, at, after, words, vectors = false, limit }) => {
      const isBefore = after === undefined || after.namespace < namespace;
      const range: Range = {
        from: isBefore ? namespace : after.namespace,
        after: isBefore ? "" : after.key,
        end: deep ? longTermRules.endOfNamespace(namespace) : `${namespace} `,
        at,
        limit,
      };
      const { page, wholePage, search, wholeSearch } = prepared();
      if (words === undefined) return rowsOf((vectors ? wholePage : page).all(range));
      if (vault !== undefined) throw sealedWords();
      return rowsOf((vectors ? wholeSearch : search).all({ ...range, words: matchOf(namespace, words) }));
    },
    apply: (changes, at) => {
      const seals = sealsOf(vault);
      for (const change of changes) {
        if ("put" in change) put(change.put, seals(change.put.namespace));
        else if ("touch" in change) touch(change.touch, seals(change.touch.namespace));
        else {
          const found = prepared().find.get(change.drop.namespace, change.drop.key);
          if (found !== undefined) remove(found);
        }
      }
      sweep(at, longTermRules.sweptWithWrite);
    },
    sweep,
    refresh: (touches) => {
      const seals = sealsOf(vault);
      return touches.map((each) => touch(each, seals(each.namespace)));
    },
    check: (after, limit, fault) => {
      const seals = sealsOf(vault);
      const rows = prepared().all.all(after, limit);
      for (const row of rows) {
        try {
          rowOf(row, seals(row.namespace));
        } catch (error) {
          fault(error);
        }
      }
      return rows.at(-1)?.key;
    },
    seal: (after, limit) => {
      const seals = sealsOf(vault);
      const rows = prepared().all.all(after, limit);
      let sealed = 0;
      for (const row of rows) {
        const own = seals(row.namespace);
        if (own?.isOld(row.value) !== true) continue;
        write(rowOf(row, own), row, own);
        sealed += 1;
      }
      return { sealed, last: rows.at(-1)?.key };
    },
    sealAll: (to) => {
      const seals = sealsOf(to);
      for (let after: number | undefined = 0; after !== undefined; ) {
        const rows: readonly Columns[] = prepared().all.all(after, 500);
        for (const row of rows)
          if (typeof row.value === "string") write(rowOf(row, undefined), row, seals(row.namespace));
        after = rows.at(-1)?.key;
      }
    },
  };
}

function prepare(db: Database) {
  return {
    get: db.prepare<[{ namespace: string; id: string; at: number }], Columns>(longTermQueries.get),
    page: db.prepare<[Range], Columns>(longTermQueries.page),
    wholePage: db.prepare<[Range], Columns>(longTermQueries.wholePage),
    search: db.prepare<[Range & { words: string }], Columns>(longTermQueries.search),
    wholeSearch: db.prepare<[Range & { words: string }], Columns>(longTermQueries.wholeSearch),
    over: db.prepare<[number, number], Columns>(longTermQueries.over),
    find: db.prepare<[string, string], Columns>(selectWhole + " WHERE l.namespace = ? AND l.id = ?"),
    all: db.prepare<[number, number], Columns>(selectWhole + " WHERE l.key > ? ORDER BY l.key LIMIT ?"),
    insert: db.prepare(
      "INSERT INTO long_term (namespace, id, created, updated, expires, refresh, words, sum, value, vector) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    update: db.prepare(
      "UPDATE long_term SET created = ?, updated = ?, expires = ?, refresh = ?, words = ?, sum = ?, value = ?, vector = ? WHERE key = ?",
    ),
    drop: db.prepare<[number]>("DELETE FROM long_term WHERE key = ?"),
    index: db.prepare<[number, string]>("INSERT INTO long_term_words (rowid, words) VALUES (?, ?)"),
    forget: db.prepare<[number, string]>(
      "INSERT INTO long_term_words (long_term_words, rowid, words) VALUES ('delete', ?, ?)",
    ),
  } as const;
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/**
 * What stands before the words of a namespace in the index; nothing before those of the root. Two namespaces that have the
 * same only make the index name rows that the range then leaves out. No word of a text has the first character of it.
 */
function mark(namespace: string): string {
  return namespace === "" ? "" : `\uE000${fingerprint(namespace).slice(0, 8)}`;
}

/** The words of a row as the index has them: once for each namespace in which they are looked for. */
function indexed(namespace: string, text: string): string {
  const ids = longTermRules.namespaceIds(namespace);
  const around = ["", ...ids.map((_, index) => longTermRules.namespaceText(ids.slice(0, index + 1)))];
  const words = text.split(" ");
  return around.flatMap((each) => words.map((word) => mark(each) + word)).join(" ");
}

/** An expression of FTS5. Words are of letters, digits and marks: none can hold a quote. */
function matchOf(namespace: string, words: readonly LongTermWord[]): string {
  const before = mark(namespace);
  return words.map(({ word, isPrefix }) => `"${before}${word}"${isPrefix ? "*" : ""}`).join(" AND ");
}

function placeOf({ namespace, key }: LongTermPlace): readonly [string, string, string] {
  return ["long_term.value", namespace, key];
}

function textOf({ namespace, id: key, value }: Columns, seals: NamespaceSeals | undefined): string {
  if (seals !== undefined) return seals.open(value, placeOf({ namespace, key }));
  if (typeof value === "string") return value;
  throw corrupt(`the item "${key}" in "${namespace}" is encrypted in a store that is not`);
}

/** A vector as the file has it: a sum, and its numbers of 4 bytes each, low byte first; of a sealed row all of that sealed. */
function vectorPayload(
  vector: Float32Array,
  [, ...place]: readonly [string, string, string],
  seals: NamespaceSeals | undefined,
): Payload {
  const bytes = Buffer.alloc(4 + 4 * vector.length);
  bytes.set(lowFirst(new Uint8Array(Float32Array.from(vector).buffer)), 4);
  bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0);
  return seals === undefined ? bytes : seals.seal(bytes.toString("base64"), ["long_term.vector", ...place]);
}

/** Throws `store_corrupt` for what is no vector as it was written. */
function vectorIn(found: Columns, payload: Payload, seals: NamespaceSeals | undefined): Float32Array {
  const at = [found.namespace, found.id] as const;
  const given = seals === undefined ? payload : Buffer.from(seals.open(payload, ["long_term.vector", ...at]), "base64");
  if (!(given instanceof Uint8Array) || given.length < 8 || given.length % 4 !== 0) throw unlike(found);
  const bytes = Buffer.from(given.buffer, given.byteOffset, given.length);
  if (crc32(bytes.subarray(4)) !== bytes.readUInt32LE(0)) throw unlike(found);
  return new Float32Array(lowFirst(Uint8Array.from(bytes.subarray(4))).buffer);
}

const isLowFirst = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Numbers of 4 bytes in the order of the file, or from there in that of this machine; in place. */
function lowFirst(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (!isLowFirst) Buffer.from(bytes.buffer).swap32();
  return bytes;
}

/** The sum of a row; what is sealed carries its own proof. */
function sumOf(row: LongTermRow, seals: NamespaceSeals | undefined): number {
  const { namespace, key, createdAt, updatedAt, expiresAt = null, refreshMs = null, words = null } = row;
  const head = JSON.stringify([namespace, key, createdAt, updatedAt, expiresAt, refreshMs, words]);
  return crc32(seals === undefined ? row.value : "", crc32(head));
}

function unlike({ namespace, id }: Columns): StatewrightError {
  return corrupt(`the item "${id}" in "${namespace}" of the long-term store is not what was written`);
}

function sealedWords(): StatewrightError {
  return new StatewrightError("invalid_option", {
    what: "a search of an encrypted long-term store asks for words, and none are kept beside what is encrypted",
    next: "Search with a filter, which opens the items of the namespace, or keep what must be found by words in a store of its own",
  });
}
