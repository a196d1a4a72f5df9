/**
 * Artifacts: one row per artifact of a tool call, and each distinct body once per thread, in pieces. A range of a
 * body is read without the rest, and no value exceeds one piece.
 */
import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import { getArtifactHandle } from "@statewright/core/adapter";
import type { ArtifactExport, ArtifactFilter, ArtifactRow, ArtifactWrite, ByteRange } from "@statewright/core/store";
import type { Database } from "better-sqlite3";
import { decryptPayload, type Payload, type ThreadCipher, type ValueContext } from "../encryption/cipher.ts";
import type { RowSource } from "../encryption/reencrypt.ts";
import { toRowKey } from "../file/schema.ts";
import { createCorruptError } from "../file/store-errors.ts";

/** Size of a piece in bytes, except the last one of a body. */
export const pieceBytes: number = 64 * 1024;

/** Reads and writes artifacts; call inside a transaction. */
export interface Artifacts {
  /** A thread export contains the body only for the first row with that body. */
  put(
    thread: { readonly id: string; readonly key: number; readonly cipher: ThreadCipher | undefined },
    artifact: Pick<ArtifactWrite, "row"> & { readonly body?: Uint8Array | undefined },
  ): void;
  list(thread: string, filter: ArtifactFilter): readonly ArtifactRow[];
  read(thread: string, key: string, range?: ByteRange): Uint8Array | undefined;
  remove(thread: string, key: string): boolean;
  listExports(thread: string): readonly ArtifactExport[];
  listRowSources(thread: string): readonly RowSource[];
  /** Returns a cursor over all rows of a thread: the row after a given key. */
  createCursor(thread: string): (after: number) => ArtifactLocation | undefined;
  /** Throws `store_corrupt` for a body that does not match the hash of its row, or has no row. */
  verify(thread: string, location: ArtifactLocation): void;
}

/** Key of a row, and key of the row that holds its body: the row itself, or an earlier row with the same body. */
export interface ArtifactLocation {
  readonly key: number;
  readonly body: number;
}

interface Columns {
  readonly key: number;
  readonly handle: string;
  readonly body: number;
  readonly bytes: number;
  readonly sum: number;
  readonly about: Payload;
}

interface Piece {
  readonly key: number;
  readonly sum: number;
  readonly data: Payload;
}

/** Keys of a thread have no index: every query sorts all of them, so one query lists many keys. */
const keysPerQuery = 2_000;

/** Returns the keys after a key in ascending order; empty at the end. */
type KeysAfter = (after: number, limit: number) => readonly number[];

const columns = "a.key, a.handle, a.body, a.bytes, a.sum, a.about";
const ofThread = " FROM threads t JOIN artifacts a ON a.thread = t.key WHERE t.id = ?";

export function createArtifacts(db: Database, getCipher: (thread: string) => ThreadCipher | undefined): Artifacts {
  const lastKey = db.prepare<[], number | null>("SELECT max(key) FROM artifacts").pluck();
  const add = db.prepare<[number, number, string, number, number, number, Payload]>(
    "INSERT INTO artifacts (key, thread, handle, body, bytes, sum, about) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const addPiece = db.prepare<[number, number, Uint8Array]>(
    "INSERT INTO artifact_pieces (key, sum, data) VALUES (?, ?, ?)",
  );
  const all = db.prepare<[string], Columns>("SELECT " + columns + ofThread + " ORDER BY a.key");
  const byHandle = db.prepare<[string, string], Columns>(
    "SELECT " + columns + ofThread + " AND a.handle = ? ORDER BY a.key",
  );
  const keysAfterKey = db
    .prepare<[string, number, number], number>("SELECT a.key" + ofThread + " AND a.key > ? ORDER BY a.key LIMIT ?")
    .pluck();
  const byKey = db.prepare<[string, number], Columns>("SELECT " + columns + ofThread + " AND a.key = ?");
  const pieces = db.prepare<[number, number], Piece>(
    "SELECT key, sum, data FROM artifact_pieces WHERE key BETWEEN ? AND ? ORDER BY key",
  );
  const piecePage = db.prepare<[number, number, number], Piece>(
    "SELECT key, sum, data FROM artifact_pieces WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
  );
  const drop = db.prepare<[number]>("DELETE FROM artifacts WHERE key = ?");
  const dropPieces = db.prepare<[number, number]>("DELETE FROM artifact_pieces WHERE key >= ? AND key < ?");
  const updateRow = db.prepare<[string, number, Payload, number]>(
    "UPDATE artifacts SET handle = ?, sum = ?, about = ? WHERE key = ?",
  );
  const updatePiece = db.prepare<[number, Payload, number]>(
    "UPDATE artifact_pieces SET sum = ?, data = ? WHERE key = ?",
  );

  /** Columns of a row that depend on encryption. */
  function toEncryptedColumns(
    cipher: ThreadCipher | undefined,
    key: number,
    body: number,
    row: ArtifactRow,
  ): Pick<Columns, "handle" | "sum" | "about"> {
    const handle = toLookupHandle(cipher, getArtifactHandle(row.key));
    const { bytes } = row;
    const text = JSON.stringify(row);
    const about = cipher === undefined ? text : cipher.encrypt(text, toRowContext(key, body));
    return { handle, sum: computeRowSum({ key, handle, body, bytes, about }), about };
  }

  function readRow(thread: string, cipher: ThreadCipher | undefined, found: Columns): ArtifactRow {
    const { key, body, bytes, about } = found;
    const text = decryptPayload(cipher, thread, about, () => toRowContext(key, body));
    const row = JSON.parse(text) as ArtifactRow;
    if (computeRowSum(found) === found.sum && row.bytes === bytes) return row;
    throw createCorruptError(`the artifact "${row.key}" does not match its checksum`, { thread, branch: row.branch });
  }

  function listRows(
    thread: string,
    key: string | undefined,
  ): readonly { readonly at: Columns; readonly row: ArtifactRow }[] {
    const cipher = getCipher(thread);
    const found =
      key === undefined ? all.all(thread) : byHandle.all(thread, toLookupHandle(cipher, getArtifactHandle(key)));
    const rows = found.map((at) => ({ at, row: readRow(thread, cipher, at) }));
    return rows.filter(({ row }) => key === undefined || row.key === key || getArtifactHandle(row.key) === key);
  }

  function readPiece(thread: string, cipher: ThreadCipher | undefined, { key, sum, data }: Piece): Uint8Array {
    if (typeof data === "string" || computePieceSum(cipher, key, data) !== sum)
      throw createCorruptError("a piece of an artifact does not match its checksum", { thread });
    return cipher === undefined ? data : cipher.decryptBytes(data, toPieceContext(key));
  }

  function readBody(thread: string, { body, bytes }: Columns, range: ByteRange): Uint8Array {
    const cipher = getCipher(thread);
    const end = Math.min(range.offset + range.limit, bytes);
    if (range.offset >= end) return new Uint8Array(0);
    const first = Math.floor(range.offset / pieceBytes);
    const last = Math.ceil(end / pieceBytes) - 1;
    const result = new Uint8Array(end - range.offset);
    let next = first;
    for (const piece of pieces.iterate(toRowKey(body, first), toRowKey(body, last))) {
      const data = readPiece(thread, cipher, piece);
      const start = next * pieceBytes;
      if (piece.key !== toRowKey(body, next) || data.length !== Math.min(pieceBytes, bytes - start)) break;
      const part = data.subarray(Math.max(range.offset - start, 0), Math.max(end - start, 0));
      result.set(part, Math.max(start - range.offset, 0));
      next += 1;
    }
    if (next <= last) throw createCorruptError("a piece of an artifact is missing", { thread });
    return result;
  }

  /**
   * Finds the row key of an existing body. The first matching row suffices: all rows with the same hash share one
   * body.
   */
  function findBody(thread: string, cipher: ThreadCipher | undefined, key: string): number | undefined {
    for (const found of byHandle.iterate(thread, toLookupHandle(cipher, getArtifactHandle(key))))
      if (readRow(thread, cipher, found).key === key) return found.body;
    return undefined;
  }

  /** Creates a key cursor that lists keys in batches. */
  function createKeyCursor(thread: string): KeysAfter {
    let keys: readonly number[] = [];
    let from = 0;
    return (after, limit) => {
      if (after < from || after >= (keys.at(-1) ?? 0)) {
        keys = keysAfterKey.all(thread, after, keysPerQuery);
        from = after;
      }
      const start = findFirstAbove(keys, after);
      return keys.slice(start, start + limit);
    };
  }

  /**
   * Lists pieces row by row: pieces of other threads lie in between, possibly very many. A row without a body has no
   * pieces.
   */
  function listPiecesAfter(keysAfter: KeysAfter, after: number, limit: number): readonly Piece[] {
    const found: Piece[] = [];
    for (let row = getBodyKey(after) - 1; found.length < limit; ) {
      const [next] = keysAfter(row, 1);
      if (next === undefined) break;
      const from = Math.max(after, toRowKey(next, 0) - 1);
      found.push(...piecePage.all(from, toRowKey(next + 1, 0), limit - found.length));
      row = next;
    }
    return found;
  }

  function listRowSources(thread: string): readonly RowSource[] {
    const listRowKeys = createKeyCursor(thread);
    const listPieceKeys = createKeyCursor(thread);
    return [
      {
        readPage: (after, limit) => {
          const keys = listRowKeys(after, limit);
          return {
            rows: keys
              .flatMap((key) => byKey.all(thread, key))
              .map((at) => ({
                payload: [at.about],
                read: (cipher) => {
                  const row = readRow(thread, cipher, at);
                  return (newest) => {
                    const { handle, sum, about } = toEncryptedColumns(newest, at.key, at.body, row);
                    updateRow.run(handle, sum, about, at.key);
                  };
                },
              })),
            last: keys.at(-1),
          };
        },
      },
      {
        readPage: (after, limit) => {
          // Pieces are large: few per page weigh as much as many other rows.
          const pieceLimit = Math.min(limit, 16);
          const found = listPiecesAfter(listPieceKeys, after, pieceLimit);
          return {
            rows: found.map((piece) => ({
              payload: [piece.data],
              read: (cipher) => {
                const data = readPiece(thread, cipher, piece);
                return (newest) => {
                  const encrypted = newest.encryptBytes(data, toPieceContext(piece.key));
                  updatePiece.run(computePieceSum(newest, piece.key, encrypted), encrypted, piece.key);
                };
              },
            })),
            last: found.length < pieceLimit ? undefined : found.at(-1)?.key,
          };
        },
      },
    ];
  }

  function writePieces(cipher: ThreadCipher | undefined, body: number, bytes: Uint8Array): void {
    for (let nth = 0; nth * pieceBytes < bytes.length; nth++) {
      const key = toRowKey(body, nth);
      const part = bytes.subarray(nth * pieceBytes, (nth + 1) * pieceBytes);
      const data = cipher === undefined ? part : cipher.encryptBytes(part, toPieceContext(key));
      addPiece.run(key, computePieceSum(cipher, key, data), data);
    }
  }

  return {
    put: ({ id, key: thread, cipher }, { row, body }) => {
      const key = (lastKey.get() ?? 0) + 1;
      const same = findBody(id, cipher, row.key);
      const bodyKey = same ?? key;
      const { handle, sum, about } = toEncryptedColumns(cipher, key, bodyKey, row);
      add.run(key, thread, handle, bodyKey, row.bytes, sum, about);
      if (same === undefined && body !== undefined) writePieces(cipher, key, body);
    },
    list: (thread, { run, key, limit }) =>
      listRows(thread, key)
        .flatMap(({ row }) => (run === undefined || row.run === run ? [row] : []))
        .slice(0, limit),
    read: (thread, key, range) => {
      const [found] = listRows(thread, key).filter(({ row }) => row.key === key);
      if (found === undefined) return undefined;
      return readBody(thread, found.at, range ?? { offset: 0, limit: found.at.bytes });
    },
    remove: (thread, key) => {
      const found = listRows(thread, key).filter(({ row }) => row.key === key);
      for (const { at } of found) {
        dropPieces.run(toRowKey(at.body, 0), toRowKey(at.body + 1, 0));
        drop.run(at.key);
      }
      return found.length > 0;
    },
    listExports: (thread) =>
      listRows(thread, undefined).map(({ at, row }) =>
        at.body === at.key ? { row, body: readBody(thread, at, { offset: 0, limit: at.bytes }) } : { row },
      ),
    listRowSources,
    createCursor: (thread) => {
      const keysAfter = createKeyCursor(thread);
      return (after) => {
        for (let [key] = keysAfter(after, 1); key !== undefined; [key] = keysAfter(key, 1)) {
          // The row may have been deleted after it was listed.
          const found = byKey.get(thread, key);
          if (found !== undefined) return { key, body: found.body };
        }
        return undefined;
      };
    },
    verify: (thread, { key: row, body }) => {
      const cipher = getCipher(thread);
      const found = byKey.get(thread, body);
      if (found === undefined) throw createCorruptError("the row of an artifact body is missing", { thread });
      if (row !== body) return;
      const { key } = readRow(thread, cipher, found);
      if (hash("sha256", readBody(thread, found, { offset: 0, limit: found.bytes })) === key) return;
      throw createCorruptError(`the artifact "${key}" does not match its hash`, { thread });
    },
  };
}

/**
 * Returns the lookup handle of a row: hashed with the secret of the thread in an encrypted store, so that an artifact
 * hash in the file does not reveal its content.
 */
function toLookupHandle(cipher: ThreadCipher | undefined, handle: string): string {
  return cipher === undefined ? handle : cipher.hash(`artifact ${handle}`);
}

/** Returns the index of the first of these ascending keys above `after`. */
function findFirstAbove(keys: readonly number[], after: number): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] ?? 0) > after) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the body key of a piece key. */
function getBodyKey(piece: number): number {
  return Math.floor(piece / toRowKey(1, 0));
}

function toRowContext(key: number, body: number): ValueContext {
  return ["artifacts.about", key, body];
}

function toPieceContext(key: number): ValueContext {
  return ["artifact_pieces.data", key];
}

/** Encrypted columns are excluded from the checksum: they are authenticated by their tag. */
function computeRowSum({ key, handle, body, bytes, about }: Omit<Columns, "sum">): number {
  return crc32(JSON.stringify([key, handle, body, bytes, typeof about === "string" ? about : ""]));
}

function computePieceSum(cipher: ThreadCipher | undefined, key: number, data: Uint8Array): number {
  return cipher === undefined ? crc32(data, crc32(String(key))) : crc32(String(key));
}
