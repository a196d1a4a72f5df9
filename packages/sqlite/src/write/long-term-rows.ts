/**
 * Rows of the long-term store: each row is verified when it is read, and its words are indexed when it is written.
 * Statements are prepared on first use.
 */

import { crc32 } from "node:zlib";
import type { StatewrightError } from "@statewright/core";
import { fingerprint } from "@statewright/core/adapter";
import { type LongTermLocation, type LongTermRow, type LongTermWord, longTermRules } from "@statewright/core/store";
import { createCorruptError, type ItemCipher, type Payload } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";

export interface Columns {
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
  /** NULL in queries without vectors. */
  readonly vector: Payload | null;
}

const columns = "l.key, l.namespace, l.id, l.created, l.updated, l.expires, l.refresh, l.words, l.sum, l.value";

/** Vectors are large, so most queries omit them. */
const select: string = "SELECT " + columns + ", NULL AS vector FROM long_term l";

const selectWhole: string = "SELECT " + columns + ", l.vector FROM long_term l";

const isLive = "(l.expires IS NULL OR l.expires > @at)";

const inRange = "(l.namespace, l.id) > (@from, @after) AND l.namespace < @end AND " + isLive;

const ofPage = inRange + " ORDER BY l.namespace, l.id LIMIT @limit";

const ofWords =
  " FROM long_term_words w CROSS JOIN long_term l ON l.key = w.rowid WHERE w.long_term_words MATCH @words AND " +
  ofPage;

/** Queries of the long-term store; each uses an index. */
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

export interface Range {
  readonly from: string;
  readonly after: string;
  readonly end: string;
  readonly at: number;
  readonly limit: number;
}

function prepareStatements(db: Database) {
  return {
    get: db.prepare<[{ namespace: string; id: string; at: number }], Columns>(longTermQueries.get),
    page: db.prepare<[Range], Columns>(longTermQueries.page),
    wholePage: db.prepare<[Range], Columns>(longTermQueries.wholePage),
    search: db.prepare<[Range & { words: string }], Columns>(longTermQueries.search),
    wholeSearch: db.prepare<[Range & { words: string }], Columns>(longTermQueries.wholeSearch),
    expired: db.prepare<[number, number], Columns>(longTermQueries.over),
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

/** Long-term rows of the file; call inside a transaction. */
export class LongTermRows {
  /** Returns the statements, prepared on first use. */
  readonly #getStatements: () => ReturnType<typeof prepareStatements>;

  constructor(db: Database) {
    this.#getStatements = memoize(() => prepareStatements(db));
  }

  /** Lists the live row at a location: one, or none. */
  listLive({ namespace, key }: LongTermLocation, at: number): readonly Columns[] {
    return this.#getStatements().get.all({ namespace, id: key, at });
  }

  /** Lists a range of rows, with their vectors or without. */
  listRange(range: Range, { vectors }: { readonly vectors: boolean }): readonly Columns[] {
    const { page, wholePage } = this.#getStatements();
    return (vectors ? wholePage : page).all(range);
  }

  /** Lists the rows of a range that match an FTS5 expression, with their vectors or without. */
  search(range: Range, { words, vectors }: { readonly words: string; readonly vectors: boolean }): readonly Columns[] {
    const { search, wholeSearch } = this.#getStatements();
    return (vectors ? wholeSearch : search).all({ ...range, words });
  }

  /** Lists expired rows. */
  listExpired(at: number, limit: number): readonly Columns[] {
    return this.#getStatements().expired.all(at, limit);
  }

  /** Lists rows in key order, after a key. */
  listAfter(key: number, limit: number): readonly Columns[] {
    return this.#getStatements().all.all(key, limit);
  }

  /** Finds the row at a location, live or expired. */
  find(namespace: string, key: string): Columns | undefined {
    return this.#getStatements().find.get(namespace, key);
  }

  /** Converts and verifies a row. Throws `store_corrupt`, `missing_key`. */
  read(found: Columns, cipher: ItemCipher | undefined): LongTermRow {
    const { namespace, id: key, words, expires, refresh, created: createdAt, updated: updatedAt } = found;
    const value = readValue(found, cipher);
    const vector = found.vector === null ? undefined : decodeVector(found, found.vector, cipher);
    const row: LongTermRow = {
      ...{ namespace, key, value, createdAt, updatedAt },
      ...(words === null ? {} : { words }),
      ...(vector === undefined ? {} : { vector }),
      ...(expires === null ? {} : { expiresAt: expires }),
      ...(refresh === null ? {} : { refreshMs: refresh }),
    };
    if (computeSum(row, cipher) === found.sum) return row;
    throw createMismatchError(found);
  }

  /** Writes a row, replacing an existing one. Words are stored only in a plain file. */
  write(newRow: LongTermRow, existing: Columns | undefined, cipher: ItemCipher | undefined): void {
    const { insert, update, forget, index } = this.#getStatements();
    const { words: _, ...rowWithoutWords } = newRow;
    const row: LongTermRow = cipher === undefined ? newRow : rowWithoutWords;
    const { namespace, key, value, createdAt, updatedAt, expiresAt = null, refreshMs = null, words = null } = row;
    const payload = cipher === undefined ? value : cipher.encrypt(value, toValueContext(row));
    const vector = row.vector === undefined ? null : encodeVector(row.vector, toValueContext(row), cipher);
    const values = [
      createdAt,
      updatedAt,
      expiresAt,
      refreshMs,
      words,
      computeSum(row, cipher),
      payload,
      vector,
    ] as const;
    const rowKey = existing?.key ?? Number(insert.run(namespace, key, ...values).lastInsertRowid);
    if (existing !== undefined) update.run(...values, rowKey);
    const oldWords = existing?.words ?? null;
    if (oldWords === words) return;
    if (oldWords !== null) forget.run(rowKey, toIndexedWords(namespace, oldWords));
    if (words !== null) index.run(rowKey, toIndexedWords(namespace, words));
  }

  /** Deletes a row and its words. */
  remove({ key, namespace, words }: Columns): void {
    const { drop, forget } = this.#getStatements();
    if (words !== null) forget.run(key, toIndexedWords(namespace, words));
    drop.run(key);
  }
}

function memoize<Value>(create: () => Value): () => Value {
  let created: { readonly value: Value } | undefined;
  return () => {
    created ??= { value: create() };
    return created.value;
  };
}

/**
 * Returns the prefix of the words of a namespace in the index; empty for the root. A prefix collision of two
 * namespaces only adds candidates, which the key range excludes. No word of a text contains the first character of
 * the prefix.
 */
function getWordPrefix(namespace: string): string {
  return namespace === "" ? "" : `\uE000${fingerprint(namespace).slice(0, 8)}`;
}

/** Returns the indexed words of a row: once for each enclosing namespace. */
function toIndexedWords(namespace: string, text: string): string {
  const ids = longTermRules.parseNamespaceText(namespace);
  const namespaces = ["", ...ids.map((_, index) => longTermRules.toNamespaceText(ids.slice(0, index + 1)))];
  const words = text.split(" ");
  return namespaces.flatMap((each) => words.map((word) => getWordPrefix(each) + word)).join(" ");
}

/** Returns an FTS5 expression. Words consist of letters, digits and marks, so no quote needs escaping. */
export function toMatchExpression(namespace: string, words: readonly LongTermWord[]): string {
  const prefix = getWordPrefix(namespace);
  return words.map(({ word, isPrefix }) => `"${prefix}${word}"${isPrefix ? "*" : ""}`).join(" AND ");
}

function toValueContext({ namespace, key }: LongTermLocation): readonly [string, string, string] {
  return ["long_term.value", namespace, key];
}

function readValue({ namespace, id: key, value }: Columns, cipher: ItemCipher | undefined): string {
  if (cipher !== undefined) return cipher.decrypt(value, toValueContext({ namespace, key }));
  if (typeof value === "string") return value;
  throw createCorruptError(`the item "${key}" in "${namespace}" is encrypted, but the store has no encryption`);
}

/**
 * Encodes a vector: a checksum, then its numbers as 4 bytes each, little-endian; encrypted as a whole in an encrypted
 * row.
 */
function encodeVector(
  vector: Float32Array,
  [, ...location]: readonly [string, string, string],
  cipher: ItemCipher | undefined,
): Payload {
  const bytes = Buffer.alloc(4 + 4 * vector.length);
  bytes.set(toLittleEndian(new Uint8Array(Float32Array.from(vector).buffer)), 4);
  bytes.writeUInt32LE(crc32(bytes.subarray(4)), 0);
  return cipher === undefined ? bytes : cipher.encrypt(bytes.toString("base64"), ["long_term.vector", ...location]);
}

/** Decodes a vector. Throws `store_corrupt` for an invalid or modified one. */
function decodeVector(found: Columns, payload: Payload, cipher: ItemCipher | undefined): Float32Array {
  const rowContext = [found.namespace, found.id] as const;
  const plain =
    cipher === undefined
      ? payload
      : Buffer.from(cipher.decrypt(payload, ["long_term.vector", ...rowContext]), "base64");
  if (!(plain instanceof Uint8Array) || plain.length < 8 || plain.length % 4 !== 0) throw createMismatchError(found);
  const bytes = Buffer.from(plain.buffer, plain.byteOffset, plain.length);
  if (crc32(bytes.subarray(4)) !== bytes.readUInt32LE(0)) throw createMismatchError(found);
  return new Float32Array(toLittleEndian(Uint8Array.from(bytes.subarray(4))).buffer);
}

const isLittleEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** Converts 4-byte numbers between the byte order of this machine and little-endian, in place. */
function toLittleEndian(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (!isLittleEndian) Buffer.from(bytes.buffer).swap32();
  return bytes;
}

/** Computes the checksum of a row; encrypted columns are authenticated and excluded. */
function computeSum(row: LongTermRow, cipher: ItemCipher | undefined): number {
  const { namespace, key, createdAt, updatedAt, expiresAt = null, refreshMs = null, words = null } = row;
  const head = JSON.stringify([namespace, key, createdAt, updatedAt, expiresAt, refreshMs, words]);
  return crc32(cipher === undefined ? row.value : "", crc32(head));
}

function createMismatchError({ namespace, id }: Columns): StatewrightError {
  return createCorruptError(`the item "${id}" in "${namespace}" of the long-term store does not match its checksum`);
}
