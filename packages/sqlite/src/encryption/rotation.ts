/**
 * A change of keys: what is not sealed with the newest key is read and sealed again, some rows in a write. Each value says
 * which key it has, so that work that was cut short goes on where it stood, and writers go on meanwhile.
 */
import { isStatewrightError, storeRules } from "@statewright/core";
import type { Reader } from "../read/reader.ts";
import type { LongTermTable } from "../write/long-term.ts";
import type { Seals, Vault } from "./cipher.ts";
import type { SealedRow, Sweeper } from "./reencrypt.ts";

/** So many rows are looked at in one write. */
const atOnce = 200;

/** One write: does its work inside a transaction of the one writer. */
export type Write = <Value>(thread: string, work: () => Value) => Promise<Value>;

/** What a change of keys works with. */
export interface Rotation {
  readonly reader: Reader;
  readonly vault: Vault;
  readonly sweeper: Sweeper;
}

/** Seal a thread with its newest key; gives how many rows were sealed again. Throws `unknown_thread`, `missing_key`. */
export async function rotateThread(
  { reader, vault, sweeper }: Rotation,
  write: Write,
  thread: string,
): Promise<number> {
  let sealed = 0;
  const sweeps = await write(thread, () => {
    const secret = reader.secret(thread);
    if (secret === undefined) throw storeRules.unknownThread(thread);
    const fresh = vault.again(thread, secret);
    if (fresh !== undefined) sweeper.secret(thread, fresh);
    return sweeper.sweeps(thread);
  });
  for (const sweep of sweeps) {
    for (let after: number | undefined = -1; after !== undefined; ) {
      const from = after;
      const page = await write(thread, () => {
        const seals = reader.seals(thread);
        const { rows, last } = sweep.page(from, atOnce);
        return { last, sealed: seals === undefined ? 0 : sealAgain(seals, rows) };
      });
      sealed += page.sealed;
      after = page.last;
    }
  }
  return sealed;
}

/** As {@link rotateThread}, for all threads; one that is deleted meanwhile is left out, and one whose key is missing is told in the end. */
export async function rotateAll(
  change: Rotation,
  write: Write,
  page: (after: number) => Promise<readonly { readonly key: number; readonly id: string }[]>,
): Promise<number> {
  let sealed = 0;
  let missing: unknown;
  for (let threads = await page(0); threads.length > 0; threads = await page(threads.at(-1)?.key ?? 0)) {
    for (const { id } of threads) {
      try {
        sealed += await rotateThread(change, write, id);
      } catch (error) {
        if (isStatewrightError(error, "missing_key")) missing ??= error;
        else if (!isStatewrightError(error, "unknown_thread")) throw error;
      }
    }
  }
  if (missing !== undefined) throw missing;
  return sealed;
}

/** Seal the long-term store with its newest keys; gives how many items were sealed again. Throws `missing_key`. */
export async function rotateItems(
  items: Pick<LongTermTable, "seal">,
  write: <Value>(work: () => Value) => Promise<Value>,
): Promise<number> {
  let sealed = 0;
  for (let after: number | undefined = 0; after !== undefined; ) {
    const from: number = after;
    const page: ReturnType<LongTermTable["seal"]> = await write(() => items.seal(from, atOnce));
    sealed += page.sealed;
    after = page.last;
  }
  return sealed;
}

function sealAgain(seals: Seals, rows: readonly SealedRow[]): number {
  const old = rows.filter(({ payload }) => payload.some((value) => value !== null && seals.isOld(value)));
  for (const row of old) row.read(seals)(seals);
  return old.length;
}
