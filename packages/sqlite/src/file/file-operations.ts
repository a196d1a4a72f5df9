/** Operations on the file of a store: vacuum, backup, verification and key rotation. */

import { invalidOption } from "@statewright/core/adapter";
import { storeRules } from "@statewright/core/store";
import { type Rotation, rotateAll, rotateItems, rotateThread, verifyStore } from "@statewright/store-kit";
import { createNoBodiesError } from "../bodies/outside-bodies.ts";
import type { SqliteStore } from "../sqlite-store.ts";
import type { StoreParts } from "../store-parts.ts";
import { createLockedError } from "../write/committer.ts";
import { backUpDatabase } from "./back-up-database.ts";
import { fsyncDatabase } from "./fsync-database.ts";
import { retryBusy } from "./retry-busy.ts";
import { vacuum } from "./vacuum.ts";

type FileOperations = Pick<SqliteStore, "vacuum" | "backup" | "verify" | "rotate">;

export function createFileOperations(parts: StoreParts): FileOperations {
  const { db, world, transactions, verifier } = parts;
  return {
    vacuum: async () => {
      transactions.refuseClosed();
      await parts.outside?.sweep();
      await vacuum(db, world, () => transactions.isClosed());
    },
    backup: async (target, backup = {}) => {
      transactions.refuseClosed();
      storeRules.checkKeys("backup", backup, ["overwrite"]);
      await backUpDatabase(db, target, backup);
    },
    verify: (thread) => verifyStore(verifier, (operation) => transactions.read(operation, thread), thread),
    rotate: (thread) => rotateKeys(parts, thread),
  };
}

async function rotateKeys(parts: StoreParts, thread: string | undefined): Promise<number> {
  const { db, world, durability, storeCipher, reader, reencryption, transactions } = parts;
  if (storeCipher === undefined)
    throw invalidOption({
      where: "rotate",
      expected: "a store with encryption",
      found: "a store without keys",
      fix: "Pass encryption: { keys } to sqliteStore",
    });
  const rotation = { ciphers: reader.ciphers, storeCipher, reencryption };
  const rows =
    thread === undefined
      ? await rotateEverything(parts, rotation)
      : (await rotateThread(rotation, (id, operation) => transactions.write(id, operation), thread)) +
        (await rotateOutside(parts, thread));
  // The caller may discard an older key now: a power failure must not restore values encrypted with it.
  const isClosed = (): boolean => transactions.isClosed();
  if (durability !== "full" && !(await retryBusy(world, isClosed, () => fsyncDatabase(db)))) throw createLockedError();
  return rows;
}

async function rotateEverything(parts: StoreParts, rotation: Rotation): Promise<number> {
  const { transactions, verifier, items, schedules } = parts;
  const until = await transactions.read(() => verifier.getNewestThreadKey());
  const list = (after: number): Promise<ReturnType<typeof verifier.listThreads>> =>
    transactions.read(() => verifier.listThreads(after, until));
  const threadRows = await rotateAll(rotation, (id, operation) => transactions.write(id, operation), list);
  let itemRows = 0;
  for (const table of [items, schedules])
    itemRows += await rotateItems(table, (operation) => transactions.write(undefined, operation));
  let bodies = 0;
  for (let page = await list(0); page.length > 0; page = await list(page.at(-1)?.key ?? 0))
    for (const { id } of page) bodies += await rotateOutside(parts, id);
  return threadRows + itemRows + bodies;
}

/** Re-encrypts the bodies of a thread outside of the file; returns their number. */
async function rotateOutside({ artifacts, outside, transactions }: StoreParts, thread: string): Promise<number> {
  const bodies = await transactions.read(() => artifacts.listOutside(thread), thread);
  const [first] = bodies;
  if (outside === undefined && first !== undefined) throw createNoBodiesError(thread, first.artifact);
  let reencrypted = 0;
  for (const body of bodies) if ((await outside?.reencrypt(body)) === true) reencrypted += 1;
  return reencrypted;
}
