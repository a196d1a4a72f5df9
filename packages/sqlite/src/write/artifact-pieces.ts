/** Bodies of artifacts, in pieces: a range of a body is read without the rest, and no value exceeds a piece. */

import { crc32 } from "node:zlib";
import type { ByteRange } from "@statewright/core/store";
import {
  createCorruptError,
  type Payload,
  type RowSource,
  type ThreadCipher,
  type ValueContext,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { toRowKey } from "../file/schema.ts";

/** Size of a piece in bytes, except the last one of a body. */
export const pieceBytes: number = 64 * 1024;

/** Row key that holds a body, and the size of the body in bytes. */
export interface StoredBody {
  readonly body: number;
  readonly bytes: number;
}

interface Piece {
  readonly key: number;
  readonly sum: number;
  readonly data: Payload;
}

/** Returns the keys after a key in ascending order; empty at the end. */
export type KeysAfter = (after: number, limit: number) => readonly number[];

function prepareStatements(db: Database) {
  return {
    addPiece: db.prepare<[number, number, Uint8Array]>("INSERT INTO artifact_pieces (key, sum, data) VALUES (?, ?, ?)"),
    pieces: db.prepare<[number, number], Piece>(
      "SELECT key, sum, data FROM artifact_pieces WHERE key BETWEEN ? AND ? ORDER BY key",
    ),
    piecePage: db.prepare<[number, number, number], Piece>(
      "SELECT key, sum, data FROM artifact_pieces WHERE key > ? AND key < ? ORDER BY key LIMIT ?",
    ),
    hasPieces: db.prepare<[number], number>("SELECT 1 FROM artifact_pieces WHERE key = ?").pluck(),
    dropPieces: db.prepare<[number, number]>("DELETE FROM artifact_pieces WHERE key >= ? AND key < ?"),
    updatePiece: db.prepare<[number, Payload, number]>("UPDATE artifact_pieces SET sum = ?, data = ? WHERE key = ?"),
  };
}

/** Reads and writes the pieces of artifact bodies; call inside a transaction. */
export class ArtifactPieces {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #getCipher: (thread: string) => ThreadCipher | undefined;

  constructor(db: Database, getCipher: (thread: string) => ThreadCipher | undefined) {
    this.#sql = prepareStatements(db);
    this.#getCipher = getCipher;
  }

  /** Returns true if the first piece of a body is in the file. */
  has(body: number): boolean {
    return this.#sql.hasPieces.get(toRowKey(body, 0)) !== undefined;
  }

  /** Reads a range of a body; only the pieces of the range are read. Throws `store_corrupt`. */
  read(thread: string, { body, bytes }: StoredBody, range: ByteRange): Uint8Array {
    const cipher = this.#getCipher(thread);
    const end = Math.min(range.offset + range.limit, bytes);
    if (range.offset >= end) return new Uint8Array(0);
    const first = Math.floor(range.offset / pieceBytes);
    const last = Math.ceil(end / pieceBytes) - 1;
    const result = new Uint8Array(end - range.offset);
    let next = first;
    for (const piece of this.#sql.pieces.iterate(toRowKey(body, first), toRowKey(body, last))) {
      const data = this.#readPiece(thread, cipher, piece);
      const start = next * pieceBytes;
      if (piece.key !== toRowKey(body, next) || data.length !== Math.min(pieceBytes, bytes - start)) break;
      const part = data.subarray(Math.max(range.offset - start, 0), Math.max(end - start, 0));
      result.set(part, Math.max(start - range.offset, 0));
      next += 1;
    }
    if (next <= last) throw createCorruptError("a piece of an artifact is missing", { thread });
    return result;
  }

  /** Writes a body in pieces. */
  write(cipher: ThreadCipher | undefined, body: number, bytes: Uint8Array): void {
    for (let nth = 0; nth * pieceBytes < bytes.length; nth++) {
      const key = toRowKey(body, nth);
      const part = bytes.subarray(nth * pieceBytes, (nth + 1) * pieceBytes);
      const data = cipher === undefined ? part : cipher.encryptBytes(part, toPieceContext(key));
      this.#sql.addPiece.run(key, computePieceSum(cipher, key, data), data);
    }
  }

  #readPiece(thread: string, cipher: ThreadCipher | undefined, { key, sum, data }: Piece): Uint8Array {
    if (typeof data === "string" || computePieceSum(cipher, key, data) !== sum)
      throw createCorruptError("a piece of an artifact does not match its checksum", { thread });
    return cipher === undefined ? data : cipher.decryptBytes(data, toPieceContext(key));
  }

  remove(body: number): void {
    this.#sql.dropPieces.run(toRowKey(body, 0), toRowKey(body + 1, 0));
  }

  /** Creates the source of the pieces of a thread, for verification and re-encryption. */
  createRowSource(thread: string, keysAfter: KeysAfter): RowSource {
    return {
      readPage: (after, limit) => {
        // Pieces are large: few per page weigh as much as many other rows.
        const pieceLimit = Math.min(limit, 16);
        const found = this.#listPiecesAfter(keysAfter, after, pieceLimit);
        return {
          rows: found.map((piece) => ({
            payload: [piece.data],
            read: (cipher) => {
              const data = this.#readPiece(thread, cipher, piece);
              return (newest) => {
                const encrypted = newest.encryptBytes(data, toPieceContext(piece.key));
                this.#sql.updatePiece.run(computePieceSum(newest, piece.key, encrypted), encrypted, piece.key);
              };
            },
          })),
          last: found.length < pieceLimit ? undefined : found.at(-1)?.key,
        };
      },
    };
  }

  /**
   * Lists pieces row by row: pieces of other threads lie in between, possibly very many. A row without a body has no
   * pieces.
   */
  #listPiecesAfter(keysAfter: KeysAfter, after: number, limit: number): readonly Piece[] {
    const found: Piece[] = [];
    for (let row = getBodyKey(after) - 1; found.length < limit; ) {
      const [next] = keysAfter(row, 1);
      if (next === undefined) break;
      const from = Math.max(after, toRowKey(next, 0) - 1);
      found.push(...this.#sql.piecePage.all(from, toRowKey(next + 1, 0), limit - found.length));
      row = next;
    }
    return found;
  }
}

/** Returns the body key of a piece key. */
function getBodyKey(piece: number): number {
  return Math.floor(piece / toRowKey(1, 0));
}

function toPieceContext(key: number): ValueContext {
  return ["artifact_pieces.data", key];
}

function computePieceSum(cipher: ThreadCipher | undefined, key: number, data: Uint8Array): number {
  return cipher === undefined ? crc32(data, crc32(String(key))) : crc32(String(key));
}
