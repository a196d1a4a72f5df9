/**
 * Long-term store. A row is found by namespace and key, a page is a range of that index, and words are found by an
 * FTS5 index that contains words only: the texts are stored in the rows alone.
 *
 * The index contains the words of a row once for each enclosing namespace, so that the cost of a search depends on
 * its own namespace only.
 */

import type { StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import {
  type LongTermChange,
  type LongTermLocation,
  type LongTermQuery,
  type LongTermRow,
  type LongTermTouch,
  longTermRules,
  type RefreshResult,
} from "@statewright/core/store";
import type { ItemCipher, StoreCipher } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { type Columns, LongTermRows, type Range, toMatchExpression } from "./long-term-rows.ts";

/** Long-term rows of the file; call inside a transaction. */
export class LongTermTable {
  readonly #rows: LongTermRows;
  readonly #storeCipher: StoreCipher | undefined;

  constructor(db: Database, storeCipher: StoreCipher | undefined) {
    this.#rows = new LongTermRows(db);
    this.#storeCipher = storeCipher;
  }

  /** Returns the live row at a location. */
  get(location: LongTermLocation, at: number): LongTermRow | undefined {
    return this.#readRows(this.#rows.listLive(location, at))[0];
  }

  /** Lists the live rows of a namespace, in pages. */
  listPage({ namespace, deep, at, after, words, vectors = false, limit }: LongTermQuery): readonly LongTermRow[] {
    const isFirstPage = after === undefined || after.namespace < namespace;
    const range: Range = {
      from: isFirstPage ? namespace : after.namespace,
      after: isFirstPage ? "" : after.key,
      end: deep ? longTermRules.getNamespaceEnd(namespace) : `${namespace} `,
      at,
      limit,
    };
    if (words === undefined) return this.#readRows(this.#rows.listRange(range, { vectors }));
    if (this.#storeCipher !== undefined) throw createWordSearchError();
    return this.#readRows(this.#rows.search(range, { words: toMatchExpression(namespace, words), vectors }));
  }

  /** Applies changes, and sweeps some expired rows. */
  apply(changes: readonly LongTermChange[], at: number): void {
    const getCipher = this.#createCipherCache(this.#storeCipher);
    for (const change of changes) {
      if ("put" in change) this.#put(change.put, getCipher(change.put.namespace));
      else if ("touch" in change) this.#touch(change.touch, getCipher(change.touch.namespace));
      else {
        const found = this.#rows.find(change.drop.namespace, change.drop.key);
        if (found !== undefined) this.#rows.remove(found);
      }
    }
    this.sweep(at, longTermRules.sweepLimitPerWrite);
  }

  /** Deletes up to `limit` expired rows; returns their number. */
  sweep(at: number, limit: number): number {
    const expired = this.#rows.listExpired(at, limit);
    for (const row of expired) this.#rows.remove(row);
    return expired.length;
  }

  /** Extends the expiry of rows that are read. */
  refresh(touches: readonly LongTermTouch[]): readonly RefreshResult[] {
    const getCipher = this.#createCipherCache(this.#storeCipher);
    return touches.map((each) => this.#touch(each, getCipher(each.namespace)));
  }

  /** Verifies up to `limit` rows after a key; returns the last key, undefined at the end. */
  verify(after: number, limit: number, onFault: (error: unknown) => void): number | undefined {
    const getCipher = this.#createCipherCache(this.#storeCipher);
    const rows = this.#rows.listAfter(after, limit);
    for (const row of rows) {
      try {
        this.#rows.read(row, getCipher(row.namespace));
      } catch (error) {
        onFault(error);
      }
    }
    return rows.at(-1)?.key;
  }

  /** Re-encrypts up to `limit` rows that do not use the newest key; returns their number and the last visited key. */
  reencrypt(after: number, limit: number): { readonly reencrypted: number; readonly last: number | undefined } {
    const getCipher = this.#createCipherCache(this.#storeCipher);
    const rows = this.#rows.listAfter(after, limit);
    let reencrypted = 0;
    for (const row of rows) {
      const cipher = getCipher(row.namespace);
      if (cipher?.isOutdated(row.value) !== true) continue;
      this.#rows.write(this.#rows.read(row, cipher), row, cipher);
      reencrypted += 1;
    }
    return { reencrypted, last: rows.at(-1)?.key };
  }

  /** Encrypts all rows of a plain file, and removes their words from the index. */
  encryptAll(to: StoreCipher): void {
    const getCipher = this.#createCipherCache(to);
    for (let after: number | undefined = 0; after !== undefined; ) {
      const rows: readonly Columns[] = this.#rows.listAfter(after, 500);
      for (const row of rows)
        if (typeof row.value === "string")
          this.#rows.write(this.#rows.read(row, undefined), row, getCipher(row.namespace));
      after = rows.at(-1)?.key;
    }
  }

  /** Creates a cache of ciphers per namespace, for a single operation. */
  #createCipherCache(from: StoreCipher | undefined): (namespace: string) => ItemCipher | undefined {
    const known = new Map<string, ItemCipher>();
    return (namespace) => {
      if (from === undefined) return undefined;
      const cipher = known.get(namespace) ?? from.getItemCipher(namespace);
      known.set(namespace, cipher);
      return cipher;
    };
  }

  #readRows(found: readonly Columns[]): readonly LongTermRow[] {
    const getCipher = this.#createCipherCache(this.#storeCipher);
    return found.map((each) => this.#rows.read(each, getCipher(each.namespace)));
  }

  #put(row: Omit<LongTermRow, "createdAt">, cipher: ItemCipher | undefined): void {
    const existing = this.#rows.find(row.namespace, row.key);
    const stays = existing !== undefined && (existing.expires === null || existing.expires > row.updatedAt);
    this.#rows.write({ ...row, createdAt: stays ? existing.created : row.updatedAt }, existing, cipher);
  }

  #touch({ at, expiresAt, namespace, key }: LongTermTouch, cipher: ItemCipher | undefined): RefreshResult {
    const found = this.#rows.find(namespace, key);
    if (found === undefined || (found.expires !== null && found.expires <= at)) return "missing";
    if (found.expires !== null && found.expires < expiresAt)
      this.#rows.write({ ...this.#rows.read(found, cipher), expiresAt }, found, cipher);
    return "refreshed";
  }
}

function createWordSearchError(): StatewrightError {
  return invalidOption({
    where: "search",
    option: "text",
    expected: "absent, because an encrypted long-term store stores no words",
    found: "a word search",
    fix: "Use a filter, which decrypts the items of the namespace, or store items for word search in a separate plain store",
  });
}
