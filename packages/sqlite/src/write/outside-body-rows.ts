/**
 * Rows of artifact bodies outside of the file: how many artifacts use a body, and since when no artifact does. A body
 * is announced before it is put, so that a body of a commit that never came is found and swept too.
 */
import { Buffer } from "node:buffer";
import type { ThreadCipher } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Owner } from "../file/owner.ts";

function prepareStatements(db: Database) {
  return {
    find: db.prepare<[string], { uses: number; sweeper: number | null }>(
      "SELECT uses, sweeper FROM artifact_bodies WHERE key = ?",
    ),
    announce: db.prepare<[string, number]>(
      "INSERT INTO artifact_bodies (key, uses, changed, sweeper) VALUES (?, 0, ?, NULL)" +
        " ON CONFLICT (key) DO UPDATE SET changed = excluded.changed, sweeper = NULL",
    ),
    use: db.prepare<[number, number, string]>(
      "UPDATE artifact_bodies SET uses = uses + ?, changed = max(changed, ?) WHERE key = ?",
    ),
    unused: db.prepare<[number, number], { key: string; sweeper: number | null }>(
      "SELECT key, sweeper FROM artifact_bodies INDEXED BY unused_artifact_bodies WHERE uses = 0 AND changed <= ? ORDER BY changed LIMIT ?",
    ),
    setSweeper: db.prepare<[number | null, string]>(
      "UPDATE artifact_bodies SET sweeper = ? WHERE key = ? AND uses = 0",
    ),
    remove: db.prepare<[string, number]>("DELETE FROM artifact_bodies WHERE key = ? AND uses = 0 AND sweeper = ?"),
    any: db.prepare<[], number>("SELECT 1 FROM artifact_bodies LIMIT 1").pluck(),
  };
}

/** Rows of bodies outside of the file; call inside a transaction. */
export class OutsideBodyRows {
  readonly #sql: ReturnType<typeof prepareStatements>;

  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** Returns true if the file has bodies outside, also announced or unused ones. */
  hasAny(): boolean {
    return this.#sql.any.get() !== undefined;
  }

  has(key: string): boolean {
    return this.#sql.find.get(key) !== undefined;
  }

  /** Announces a body that is about to be put. Returns false while a live owner sweeps a body of this key. */
  announce(key: string, at: number, owner: Pick<Owner, "isAlive">): boolean {
    const sweeper = this.#sql.find.get(key)?.sweeper ?? null;
    if (sweeper !== null && owner.isAlive(sweeper)) return false;
    this.#sql.announce.run(key, at);
    return true;
  }

  /** Counts an artifact that uses the body, or one that does no more. */
  count(key: string, change: 1 | -1, at: number): void {
    this.#sql.use.run(change, at, key);
  }

  /** Marks bodies that no artifact uses since a time as swept by this owner; returns their keys. */
  beginSweep(
    until: number,
    limit: number,
    { self, owner }: { readonly self: number; readonly owner: Owner },
  ): readonly string[] {
    const found = this.#sql.unused.all(until, limit);
    const keys = found.flatMap(({ key, sweeper }) =>
      sweeper === null || sweeper === self || !owner.isAlive(sweeper) ? [key] : [],
    );
    for (const key of keys) this.#sql.setSweeper.run(self, key);
    return keys;
  }

  /** Removes the rows of deleted bodies, and releases the others. */
  endSweep(deleted: readonly string[], kept: readonly string[], self: number): void {
    for (const key of deleted) this.#sql.remove.run(key, self);
    for (const key of kept) this.#sql.setSweeper.run(null, key);
  }
}

/**
 * Returns the key of a body outside of the file. In an encrypted thread an HMAC with the secret of the thread: a hash
 * would reveal a known content.
 */
export function toOutsideKey(cipher: Pick<ThreadCipher, "hash"> | undefined, artifactKey: string): string {
  if (cipher === undefined) return artifactKey;
  return Buffer.from(cipher.hash(`artifact body ${artifactKey}`), "base64").toString("hex");
}
