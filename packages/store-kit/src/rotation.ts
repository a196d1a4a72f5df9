/**
 * Key rotation: values not encrypted with the newest key are re-encrypted, a few rows per write. Each value contains
 * its key id, so that an interrupted rotation continues, concurrently with other writers.
 */
import { isStatewrightError } from "@statewright/core";
import { storeRules } from "@statewright/core/store";
import type { Payload, StoreCipher, ThreadCipher } from "./cipher.ts";
import type { EncryptableRow, RowSource } from "./row-source.ts";

/** Rows per write. */
const rowsPerWrite = 200;

/** A write inside a transaction of the single writer. */
export type Write = <Value>(thread: string, operation: () => Value) => Promise<Value>;

/** Dependencies of a key rotation. */
export interface Rotation {
  readonly ciphers: {
    get(thread: string): ThreadCipher | undefined;
    /** Encrypted secret of a thread; null in a plain thread, undefined for an unknown thread. */
    getSecret(thread: string): Payload | null | undefined;
  };
  readonly storeCipher: StoreCipher;
  readonly reencryption: {
    listRowSources(thread: string): readonly RowSource[];
    putSecret(thread: string, secret: Uint8Array): void;
  };
}

/** Items of the long-term store. */
export interface RotatedItems {
  /** Re-encrypts up to `limit` items after a key; `last` is the key for the next page, undefined on the last page. */
  reencrypt(after: number, limit: number): { readonly reencrypted: number; readonly last: number | undefined };
}

/**
 * Re-encrypts a thread with its newest key; returns the number of re-encrypted rows. Throws `unknown_thread`,
 * `missing_key`.
 */
export async function rotateThread(
  { ciphers, storeCipher, reencryption }: Rotation,
  write: Write,
  thread: string,
): Promise<number> {
  let reencrypted = 0;
  const sources = await write(thread, () => {
    const secret = ciphers.getSecret(thread);
    if (secret === undefined) throw storeRules.createUnknownThreadError(thread);
    const newSecret = storeCipher.reencryptSecret(thread, secret);
    if (newSecret !== undefined) reencryption.putSecret(thread, newSecret);
    return reencryption.listRowSources(thread);
  });
  for (const source of sources) {
    for (let after: number | undefined = -1; after !== undefined; ) {
      const from = after;
      const page = await write(thread, () => {
        const cipher = ciphers.get(thread);
        const { rows, last } = source.readPage(from, rowsPerWrite);
        return { last, reencrypted: cipher === undefined ? 0 : reencryptRows(cipher, rows) };
      });
      reencrypted += page.reencrypted;
      after = page.last;
    }
  }
  return reencrypted;
}

/**
 * Runs {@link rotateThread} for all threads. Skips threads deleted meanwhile; throws the first missing key at the
 * end.
 */
export async function rotateAll(
  rotation: Rotation,
  write: Write,
  page: (after: number) => Promise<readonly { readonly key: number; readonly id: string }[]>,
): Promise<number> {
  let reencrypted = 0;
  let missing: unknown;
  for (let threads = await page(0); threads.length > 0; threads = await page(threads.at(-1)?.key ?? 0)) {
    for (const { id } of threads) {
      try {
        reencrypted += await rotateThread(rotation, write, id);
      } catch (error) {
        if (isStatewrightError(error, "missing_key")) missing ??= error;
        else if (!isStatewrightError(error, "unknown_thread")) throw error;
      }
    }
  }
  if (missing !== undefined) throw missing;
  return reencrypted;
}

/**
 * Re-encrypts the long-term store with its newest keys; returns the number of re-encrypted items. Throws
 * `missing_key`.
 */
export async function rotateItems(
  items: RotatedItems,
  write: <Value>(operation: () => Value) => Promise<Value>,
): Promise<number> {
  let reencrypted = 0;
  for (let after: number | undefined = 0; after !== undefined; ) {
    const from: number = after;
    const page: ReturnType<RotatedItems["reencrypt"]> = await write(() => items.reencrypt(from, rowsPerWrite));
    reencrypted += page.reencrypted;
    after = page.last;
  }
  return reencrypted;
}

function reencryptRows(cipher: ThreadCipher, rows: readonly EncryptableRow[]): number {
  const outdated = rows.filter(({ payload }) => payload.some((value) => value !== null && cipher.isOutdated(value)));
  for (const row of outdated) row.read(cipher)(cipher);
  return outdated.length;
}
