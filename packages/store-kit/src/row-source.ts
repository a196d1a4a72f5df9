/** Encryptable rows of a thread, page by page, for verification and key rotation. */
import type { Payload, ThreadCipher } from "./cipher.ts";

/** Stored row with columns that can be encrypted. */
export interface EncryptableRow {
  /** Values of the payload columns. */
  readonly payload: readonly (Payload | null)[];
  /**
   * Verifies and decrypts the row; returns a function that writes the row with another cipher. Throws
   * `store_corrupt`, `missing_key`.
   */
  read(cipher: ThreadCipher | undefined): (newest: ThreadCipher) => void;
}

/** Rows of a kind of a thread, page by page. */
export interface RowSource {
  /** Returns up to `limit` rows after a key; `last` is the key for the next page, undefined on the last page. */
  readPage(
    after: number,
    limit: number,
  ): { readonly rows: readonly EncryptableRow[]; readonly last: number | undefined };
}

/** Creates a source of rows. `read` verifies and decrypts a row, and returns the function that writes it. */
export function createRowSource<Row extends { readonly key: number }>(
  rows: (after: number, limit: number) => readonly Row[],
  payload: (row: Row) => readonly (Payload | null)[],
  read: (row: Row, cipher: ThreadCipher | undefined) => (newest: ThreadCipher) => void,
): RowSource {
  return {
    readPage: (after, limit) => {
      const found = rows(after, limit);
      return {
        rows: found.map((row) => ({ payload: payload(row), read: (cipher) => read(row, cipher) })),
        last: found.length < limit ? undefined : found.at(-1)?.key,
      };
    },
  };
}
