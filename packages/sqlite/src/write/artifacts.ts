/** Artifacts: a single row per artifact of a tool call, and each distinct body once per thread. */

import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import { getArtifactHandle } from "@statewright/core/adapter";
import type { ArtifactExport, ArtifactFilter, ArtifactRow, ArtifactWrite, ByteRange } from "@statewright/core/store";
import {
  createCorruptError,
  decryptPayload,
  isUnreadable,
  type Payload,
  type RowSource,
  type ThreadCipher,
  type ValueContext,
} from "@statewright/store-kit";
import type { OutsideBody } from "../bodies/outside-bodies.ts";
import { OutsideBodyRows, toOutsideKey } from "../bodies/outside-body-rows.ts";
import type { Database } from "../driver/database.ts";
import { ArtifactPieces, type KeysAfter } from "./artifact-pieces.ts";

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

/** Keys of a thread have no index: every query sorts all of them, so a single query lists many keys. */
const keysPerQuery = 2_000;

const columns = "a.key, a.handle, a.body, a.bytes, a.sum, a.about";

const ofThread = " FROM threads t JOIN artifacts a ON a.thread = t.key WHERE t.id = ?";

function prepareStatements(db: Database) {
  return {
    lastKey: db.prepare<[], number | null>("SELECT max(key) FROM artifacts").pluck(),
    add: db.prepare<[number, number, string, number, number, number, Payload]>(
      "INSERT INTO artifacts (key, thread, handle, body, bytes, sum, about) VALUES (?, ?, ?, ?, ?, ?, ?)",
    ),
    all: db.prepare<[string], Columns>("SELECT " + columns + ofThread + " ORDER BY a.key"),
    byHandle: db.prepare<[string, string], Columns>(
      "SELECT " + columns + ofThread + " AND a.handle = ? ORDER BY a.key",
    ),
    keysAfterKey: db
      .prepare<[string, number, number], number>("SELECT a.key" + ofThread + " AND a.key > ? ORDER BY a.key LIMIT ?")
      .pluck(),
    byKey: db.prepare<[string, number], Columns>("SELECT " + columns + ofThread + " AND a.key = ?"),
    drop: db.prepare<[number]>("DELETE FROM artifacts WHERE key = ?"),
    updateRow: db.prepare<[string, number, Payload, number]>(
      "UPDATE artifacts SET handle = ?, sum = ?, about = ? WHERE key = ?",
    ),
  };
}

/** Reads and writes artifacts; call inside a transaction. */
export class Artifacts {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #getCipher: (thread: string) => ThreadCipher | undefined;
  readonly #bodies: ArtifactPieces;
  readonly #outside: OutsideBodyRows;
  /** True if the store puts bodies outside of the file before it names them. */
  readonly #putsOutside: boolean;

  constructor(
    db: Database,
    {
      getCipher,
      putsOutside,
    }: { readonly getCipher: (thread: string) => ThreadCipher | undefined; readonly putsOutside: boolean },
  ) {
    this.#sql = prepareStatements(db);
    this.#putsOutside = putsOutside;
    this.#getCipher = getCipher;
    this.#bodies = new ArtifactPieces(db, getCipher);
    this.#outside = new OutsideBodyRows(db);
  }

  /** A thread export contains the body only for the first row with that body. */
  put(
    {
      id,
      key: thread,
      cipher,
    }: { readonly id: string; readonly key: number; readonly cipher: ThreadCipher | undefined },
    { row, body }: Pick<ArtifactWrite, "row"> & { readonly body?: Uint8Array | undefined },
  ): void {
    const key = (this.#sql.lastKey.get() ?? 0) + 1;
    const same = this.#findBody(id, cipher, row.key);
    const bodyKey = same ?? key;
    const { handle, sum, about } = this.#toEncryptedColumns(cipher, key, bodyKey, row);
    this.#sql.add.run(key, thread, handle, bodyKey, row.bytes, sum, about);
    if (same !== undefined || body === undefined) return;
    const outsideKey = toOutsideKey(cipher, row.key);
    // A body outside of the file was announced and put before. Only this store's own put proves the body.
    if (this.#putsOutside && body.length > 0 && this.#outside.has(outsideKey))
      this.#outside.count(outsideKey, 1, row.at);
    else this.#bodies.write(cipher, key, body);
  }

  /** Lists the artifacts of a thread, oldest first. */
  list(thread: string, { run, key, limit }: ArtifactFilter): readonly ArtifactRow[] {
    return this.#listRows(thread, key)
      .flatMap(({ row }) => (run === undefined || row.run === run ? [row] : []))
      .slice(0, limit);
  }

  /** Reads a body, or a range of it; undefined for an unknown key, and the place of a body outside of the file. */
  read(thread: string, key: string, range?: ByteRange): Uint8Array | OutsideBody | undefined {
    const [found] = this.#listRows(thread, key).filter(({ row }) => row.key === key);
    if (found === undefined) return undefined;
    const outside = this.#findOutside(thread, found.at, key);
    if (outside !== undefined) return outside;
    return this.#bodies.read(thread, found.at, range ?? { offset: 0, limit: found.at.bytes });
  }

  /** Deletes an artifact and its body; false for an unknown key. */
  remove(thread: string, key: string, now: number): boolean {
    const found = this.#listRows(thread, key).filter(({ row }) => row.key === key);
    for (const { at } of found) {
      if (at.body === at.key) this.#releaseOutside(this.#findOutside(thread, at, key), now);
      this.#bodies.remove(at.body);
      this.#sql.drop.run(at.key);
    }
    return found.length > 0;
  }

  /** Counts the bodies of a deleted thread outside of the file as unused. An unreadable row keeps its body. */
  releaseBodies(thread: string, now: number): void {
    if (!this.#outside.hasAny()) return;
    for (const key of this.#sql.keysAfterKey.all(thread, 0, -1))
      this.#releaseOutside(this.#findOutsideOfRow(thread, key), now);
  }

  /** Lists the bodies of a thread outside of the file. */
  listOutside(thread: string): readonly OutsideBody[] {
    if (!this.#outside.hasAny()) return [];
    return this.#listRows(thread, undefined).flatMap(({ at, row }) => {
      const outside = at.body === at.key ? this.#findOutside(thread, at, row.key) : undefined;
      return outside === undefined ? [] : [outside];
    });
  }

  /** Finds the place of a body outside of the file; undefined for a body in pieces. */
  #findOutside(thread: string, { body, bytes }: Columns, artifact: string): OutsideBody | undefined {
    if (bytes === 0 || this.#bodies.has(body)) return undefined;
    const cipher = this.#getCipher(thread);
    const outsideKey = toOutsideKey(cipher, artifact);
    return this.#outside.has(outsideKey) ? { thread, artifact, outsideKey, cipher } : undefined;
  }

  #releaseOutside(outside: OutsideBody | undefined, now: number): void {
    if (outside !== undefined) this.#outside.count(outside.outsideKey, -1, now);
  }

  #findOutsideOfRow(thread: string, key: number): OutsideBody | undefined {
    const found = this.#sql.byKey.get(thread, key);
    if (found === undefined || found.body !== key || this.#bodies.has(key)) return undefined;
    try {
      return this.#findOutside(thread, found, this.#readRow(thread, this.#getCipher(thread), found).key);
    } catch (thrown) {
      if (isUnreadable(thrown)) return undefined;
      throw thrown;
    }
  }

  /** Lists all artifacts of a thread, with or without their bodies; bodies outside of the file are absent. */
  listExports(thread: string, bodies: "include" | "omit"): readonly ArtifactExport[] {
    return this.#listRows(thread, undefined).map(({ at, row }) =>
      bodies === "include" && at.body === at.key && this.#findOutside(thread, at, row.key) === undefined
        ? { row, body: this.#bodies.read(thread, at, { offset: 0, limit: at.bytes }) }
        : { row },
    );
  }

  /** Lists the sources of the rows and pieces of a thread, for verification and re-encryption. */
  listRowSources(thread: string): readonly RowSource[] {
    const listRowKeys = this.#createKeyCursor(thread);
    return [
      {
        readPage: (after, limit) => {
          const keys = listRowKeys(after, limit);
          return {
            rows: keys
              .flatMap((key) => this.#sql.byKey.all(thread, key))
              .map((at) => ({
                payload: [at.about],
                read: (cipher) => {
                  const row = this.#readRow(thread, cipher, at);
                  return (newest) => {
                    const { handle, sum, about } = this.#toEncryptedColumns(newest, at.key, at.body, row);
                    this.#sql.updateRow.run(handle, sum, about, at.key);
                  };
                },
              })),
            last: keys.at(-1),
          };
        },
      },
      this.#bodies.createRowSource(thread, this.#createKeyCursor(thread)),
    ];
  }

  /** Returns a cursor over all rows of a thread: the row after a given key. */
  createCursor(thread: string): (after: number) => ArtifactLocation | undefined {
    const keysAfter = this.#createKeyCursor(thread);
    return (after) => {
      for (let [key] = keysAfter(after, 1); key !== undefined; [key] = keysAfter(key, 1)) {
        // The row may have been deleted after it was listed.
        const found = this.#sql.byKey.get(thread, key);
        if (found !== undefined) return { key, body: found.body };
      }
      return undefined;
    };
  }

  /**
   * Throws `store_corrupt` for a body that does not match the hash of its row, or has no row. Returns the place of a body
   * outside of the file, which is not read.
   */
  verify(thread: string, { key: row, body }: ArtifactLocation): OutsideBody | undefined {
    const cipher = this.#getCipher(thread);
    const found = this.#sql.byKey.get(thread, body);
    if (found === undefined) throw createCorruptError("the row of an artifact body is missing", { thread });
    if (row !== body) return undefined;
    const { key } = this.#readRow(thread, cipher, found);
    const outside = this.#findOutside(thread, found, key);
    if (outside !== undefined) return outside;
    if (hash("sha256", this.#bodies.read(thread, found, { offset: 0, limit: found.bytes })) === key) return undefined;
    throw createCorruptError(`the artifact "${key}" does not match its hash`, { thread });
  }

  /** Columns of a row that depend on encryption. */
  #toEncryptedColumns(
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

  #readRow(thread: string, cipher: ThreadCipher | undefined, found: Columns): ArtifactRow {
    const { key, body, bytes, about } = found;
    const text = decryptPayload(cipher, thread, about, () => toRowContext(key, body));
    const row = JSON.parse(text) as ArtifactRow;
    if (computeRowSum(found) === found.sum && row.bytes === bytes) return row;
    throw createCorruptError(`the artifact "${row.key}" does not match its checksum`, { thread, branch: row.branch });
  }

  #listRows(thread: string, key: string | undefined): readonly { readonly at: Columns; readonly row: ArtifactRow }[] {
    const cipher = this.#getCipher(thread);
    const found =
      key === undefined
        ? this.#sql.all.all(thread)
        : this.#sql.byHandle.all(thread, toLookupHandle(cipher, getArtifactHandle(key)));
    const rows = found.map((at) => ({ at, row: this.#readRow(thread, cipher, at) }));
    return rows.filter(({ row }) => key === undefined || row.key === key || getArtifactHandle(row.key) === key);
  }

  /**
   * Finds the row key of an existing body. The first matching row suffices: all rows with the same hash share one
   * body.
   */
  #findBody(thread: string, cipher: ThreadCipher | undefined, key: string): number | undefined {
    for (const found of this.#sql.byHandle.iterate(thread, toLookupHandle(cipher, getArtifactHandle(key))))
      if (this.#readRow(thread, cipher, found).key === key) return found.body;
    return undefined;
  }

  /** Creates a key cursor that lists keys in batches. */
  #createKeyCursor(thread: string): KeysAfter {
    let keys: readonly number[] = [];
    let from = 0;
    return (after, limit) => {
      if (after < from || after >= (keys.at(-1) ?? 0)) {
        keys = this.#sql.keysAfterKey.all(thread, after, keysPerQuery);
        from = after;
      }
      const start = findFirstAbove(keys, after);
      return keys.slice(start, start + limit);
    };
  }
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

function toRowContext(key: number, body: number): ValueContext {
  return ["artifacts.about", key, body];
}

/** Encrypted columns are excluded from the checksum: they are authenticated by their tag. */
function computeRowSum({ key, handle, body, bytes, about }: Omit<Columns, "sum">): number {
  return crc32(JSON.stringify([key, handle, body, bytes, typeof about === "string" ? about : ""]));
}
