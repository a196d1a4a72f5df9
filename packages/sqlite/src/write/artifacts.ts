/**
 * Artifacts in the file: a row for each call that gave one, and the body in pieces, once in its thread. A part of a body is
 * read without the rest of it, and no value is larger than a piece.
 */
import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import {
  type ArtifactFilter,
  type ArtifactImage,
  type ArtifactRow,
  type ArtifactWrite,
  type ByteRange,
  handleOf,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import { opened, type Payload, type Place, type Seals } from "../encryption/cipher.ts";
import type { Sweep } from "../encryption/reencrypt.ts";
import { keyAt } from "../file/schema.ts";
import { corrupt } from "../file/store-errors.ts";

/** Bytes of a piece, save the last one of a body. */
export const pieceBytes: number = 64 * 1024;

/** What reads and writes artifacts; to be asked inside a transaction. */
export interface Artifacts {
  /** An image has the body of a row only where no row before it has. */
  put(
    thread: { readonly id: string; readonly key: number; readonly seals: Seals | undefined },
    artifact: Pick<ArtifactWrite, "row"> & { readonly body?: Uint8Array | undefined },
  ): void;
  list(thread: string, filter: ArtifactFilter): readonly ArtifactRow[];
  read(thread: string, key: string, range?: ByteRange): Uint8Array | undefined;
  remove(thread: string, key: string): boolean;
  images(thread: string): readonly ArtifactImage[];
  sweeps(thread: string): readonly Sweep[];
  /** Gives the row after another, by their keys, for a walk over all that a thread has. */
  walk(thread: string): (after: number) => ArtifactPlace | undefined;
  /** Throws `store_corrupt` for a body that is not what its row names, or that has lost its row. */
  check(thread: string, place: ArtifactPlace): void;
}

/** A row, and the one that came with its body: itself, or an earlier one that gave the same. */
export interface ArtifactPlace {
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

/** Keys of a thread have no index of their own: each list of them sorts all, so many are listed at once. */
const listedAtOnce = 2_000;

/** Keys after one, in their order; none when there are no more. */
type KeysAfter = (after: number, limit: number) => readonly number[];

const columns = "a.key, a.handle, a.body, a.bytes, a.sum, a.about";
const ofThread = " FROM threads t JOIN artifacts a ON a.thread = t.key WHERE t.id = ?";

export function createArtifacts(db: Database, sealsOf: (thread: string) => Seals | undefined): Artifacts {
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
  const listed = db
    .prepare<[string, number, number], number>("SELECT a.key" + ofThread + " AND a.key > ? ORDER BY a.key LIMIT ?")
    .pluck();
  const one = db.prepare<[string, number], Columns>("SELECT " + columns + ofThread + " AND a.key = ?");
  const pieces = db.prepare<[number, number], Piece>(
    "SELECT key, sum, data FROM artifact_pieces WHERE key BETWEEN ? AND ? ORDER BY key",
  );
  const piecePage = db.prepare<[number, number, number], Piece>(
    "SELECT key, sum, data FROM artifact_pieces WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
  );
  const drop = db.prepare<[number]>("DELETE FROM artifacts WHERE key = ?");
  const dropPieces = db.prepare<[number, number]>("DELETE FROM artifact_pieces WHERE key >= ? AND key < ?");
  const putAgain = db.prepare<[string, number, Payload, number]>(
    "UPDATE artifacts SET handle = ?, sum = ?, about = ? WHERE key = ?",
  );
  const putPieceAgain = db.prepare<[number, Payload, number]>(
    "UPDATE artifact_pieces SET sum = ?, data = ? WHERE key = ?",
  );

  /** The columns of a row that depend on whether it is sealed. */
  function sealedColumns(
    seals: Seals | undefined,
    key: number,
    body: number,
    row: ArtifactRow,
  ): Pick<Columns, "handle" | "sum" | "about"> {
    const handle = handleAs(seals, handleOf(row.key));
    const { bytes } = row;
    const text = JSON.stringify(row);
    const about = seals === undefined ? text : seals.seal(text, aboutPlace(key, body));
    return { handle, sum: rowSum({ key, handle, body, bytes, about }), about };
  }

  function readRow(thread: string, seals: Seals | undefined, found: Columns): ArtifactRow {
    const { key, body, bytes, about } = found;
    const text = opened(seals, thread, about, () => aboutPlace(key, body));
    const row = JSON.parse(text) as ArtifactRow;
    if (rowSum(found) === found.sum && row.bytes === bytes) return row;
    throw corrupt(`the artifact "${row.key}" is not what was written`, { thread, branch: row.branch });
  }

  function rowsOf(
    thread: string,
    key: string | undefined,
  ): readonly { readonly at: Columns; readonly row: ArtifactRow }[] {
    const seals = sealsOf(thread);
    const found = key === undefined ? all.all(thread) : byHandle.all(thread, handleAs(seals, handleOf(key)));
    const rows = found.map((at) => ({ at, row: readRow(thread, seals, at) }));
    return rows.filter(({ row }) => key === undefined || row.key === key || handleOf(row.key) === key);
  }

  function bytesOf(thread: string, seals: Seals | undefined, { key, sum, data }: Piece): Uint8Array {
    if (typeof data === "string" || pieceSum(seals, key, data) !== sum)
      throw corrupt("a piece of an artifact is not what was written", { thread });
    return seals === undefined ? data : seals.openBytes(data, piecePlace(key));
  }

  function bodyOf(thread: string, { body, bytes }: Columns, range: ByteRange): Uint8Array {
    const seals = sealsOf(thread);
    const end = Math.min(range.offset + range.limit, bytes);
    if (range.offset >= end) return new Uint8Array(0);
    const first = Math.floor(range.offset / pieceBytes);
    const last = Math.ceil(end / pieceBytes) - 1;
    const whole = new Uint8Array(end - range.offset);
    let next = first;
    for (const piece of pieces.iterate(keyAt(body, first), keyAt(body, last))) {
      const data = bytesOf(thread, seals, piece);
      const start = next * pieceBytes;
      if (piece.key !== keyAt(body, next) || data.length !== Math.min(pieceBytes, bytes - start)) break;
      const part = data.subarray(Math.max(range.offset - start, 0), Math.max(end - start, 0));
      whole.set(part, Math.max(start - range.offset, 0));
      next += 1;
    }
    if (next <= last) throw corrupt("a piece of an artifact is not there", { thread });
    return whole;
  }

  /** Where the body with this key stands. One row tells it, however many calls have given it. */
  function bodyAlready(thread: string, seals: Seals | undefined, key: string): number | undefined {
    for (const found of byHandle.iterate(thread, handleAs(seals, handleOf(key))))
      if (readRow(thread, seals, found).key === key) return found.body;
    return undefined;
  }

  /** Lists keys ahead, and again where the walk leaves what is listed. */
  function keysOf(thread: string): KeysAfter {
    let keys: readonly number[] = [];
    let from = 0;
    return (after, limit) => {
      if (after < from || after >= (keys.at(-1) ?? 0)) {
        keys = listed.all(thread, after, listedAtOnce);
        from = after;
      }
      const start = firstAbove(keys, after);
      return keys.slice(start, start + limit);
    };
  }

  /** Row by row: the pieces of other threads stand between theirs, and there may be many. A row without a body has none. */
  function piecesAfter(keysAfter: KeysAfter, after: number, most: number): readonly Piece[] {
    const found: Piece[] = [];
    for (let row = bodyAt(after) - 1; found.length < most; ) {
      const [next] = keysAfter(row, 1);
      if (next === undefined) break;
      const from = Math.max(after, keyAt(next, 0) - 1);
      found.push(...piecePage.all(from, keyAt(next + 1, 0), most - found.length));
      row = next;
    }
    return found;
  }

  function sweepsOf(thread: string): readonly Sweep[] {
    const rowsAfter = keysOf(thread);
    const piecesIn = keysOf(thread);
    return [
      {
        page: (after, limit) => {
          const keys = rowsAfter(after, limit);
          return {
            rows: keys
              .flatMap((key) => one.all(thread, key))
              .map((at) => ({
                payload: [at.about],
                read: (seals) => {
                  const row = readRow(thread, seals, at);
                  return (newest) => {
                    const { handle, sum, about } = sealedColumns(newest, at.key, at.body, row);
                    putAgain.run(handle, sum, about, at.key);
                  };
                },
              })),
            last: keys.at(-1),
          };
        },
      },
      {
        page: (after, limit) => {
          // Pieces are large: few at a time hold as much as many other rows.
          const most = Math.min(limit, 16);
          const found = piecesAfter(piecesIn, after, most);
          return {
            rows: found.map((piece) => ({
              payload: [piece.data],
              read: (seals) => {
                const data = bytesOf(thread, seals, piece);
                return (newest) => {
                  const sealed = newest.sealBytes(data, piecePlace(piece.key));
                  putPieceAgain.run(pieceSum(newest, piece.key, sealed), sealed, piece.key);
                };
              },
            })),
            last: found.length < most ? undefined : found.at(-1)?.key,
          };
        },
      },
    ];
  }

  function writePieces(seals: Seals | undefined, body: number, bytes: Uint8Array): void {
    for (let nth = 0; nth * pieceBytes < bytes.length; nth++) {
      const key = keyAt(body, nth);
      const part = bytes.subarray(nth * pieceBytes, (nth + 1) * pieceBytes);
      const data = seals === undefined ? part : seals.sealBytes(part, piecePlace(key));
      addPiece.run(key, pieceSum(seals, key, data), data);
    }
  }

  return {
    put: ({ id, key: thread, seals }, { row, body }) => {
      const key = (lastKey.get() ?? 0) + 1;
      const same = bodyAlready(id, seals, row.key);
      const place = same ?? key;
      const { handle, sum, about } = sealedColumns(seals, key, place, row);
      add.run(key, thread, handle, place, row.bytes, sum, about);
      if (same === undefined && body !== undefined) writePieces(seals, key, body);
    },
    list: (thread, { run, key, limit }) =>
      rowsOf(thread, key)
        .flatMap(({ row }) => (run === undefined || row.run === run ? [row] : []))
        .slice(0, limit),
    read: (thread, key, range) => {
      const [found] = rowsOf(thread, key).filter(({ row }) => row.key === key);
      if (found === undefined) return undefined;
      return bodyOf(thread, found.at, range ?? { offset: 0, limit: found.at.bytes });
    },
    remove: (thread, key) => {
      const found = rowsOf(thread, key).filter(({ row }) => row.key === key);
      for (const { at } of found) {
        dropPieces.run(keyAt(at.body, 0), keyAt(at.body + 1, 0));
        drop.run(at.key);
      }
      return found.length > 0;
    },
    images: (thread) =>
      rowsOf(thread, undefined).map(({ at, row }) =>
        at.body === at.key ? { row, body: bodyOf(thread, at, { offset: 0, limit: at.bytes }) } : { row },
      ),
    sweeps: sweepsOf,
    walk: (thread) => {
      const keysAfter = keysOf(thread);
      return (after) => {
        for (let [key] = keysAfter(after, 1); key !== undefined; [key] = keysAfter(key, 1)) {
          // It may have been deleted since it was listed.
          const found = one.get(thread, key);
          if (found !== undefined) return { key, body: found.body };
        }
        return undefined;
      };
    },
    check: (thread, { key: row, body }) => {
      const seals = sealsOf(thread);
      const found = one.get(thread, body);
      if (found === undefined) throw corrupt("a body of an artifact has lost its row", { thread });
      if (row !== body) return;
      const { key } = readRow(thread, seals, found);
      if (hash("sha256", bodyOf(thread, found, { offset: 0, limit: found.bytes })) === key) return;
      throw corrupt(`the artifact "${key}" is not what was kept`, { thread });
    },
  };
}

/** By what a row is found: who has an encrypted file must not learn what a body is by its hash. */
function handleAs(seals: Seals | undefined, handle: string): string {
  return seals === undefined ? handle : seals.hash(`artifact ${handle}`);
}

/** The place of the first of these ascending keys that is above `after`. */
function firstAbove(keys: readonly number[], after: number): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((keys[middle] ?? 0) > after) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The body of a piece, by their keys. */
function bodyAt(piece: number): number {
  return Math.floor(piece / keyAt(1, 0));
}

function aboutPlace(key: number, body: number): Place {
  return ["artifacts.about", key, body];
}

function piecePlace(key: number): Place {
  return ["artifact_pieces.data", key];
}

/** What is sealed is not summed: it carries its own proof. */
function rowSum({ key, handle, body, bytes, about }: Omit<Columns, "sum">): number {
  return crc32(JSON.stringify([key, handle, body, bytes, typeof about === "string" ? about : ""]));
}

function pieceSum(seals: Seals | undefined, key: number, data: Uint8Array): number {
  return seals === undefined ? crc32(data, crc32(String(key))) : crc32(String(key));
}
