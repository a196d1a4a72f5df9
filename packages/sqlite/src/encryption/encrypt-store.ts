/** `encryptStore`: converts a plain file to an encrypted file, with all of its threads. */

import { StatewrightError } from "@statewright/core";
import { invalidOption } from "@statewright/core/adapter";
import {
  createStoreCipher,
  type Encryption,
  hashCheckpoint,
  hashRemainingDeltas,
  type StoreCipher,
  type ThreadCipher,
} from "@statewright/store-kit";
import { OutsideBodyRows } from "../bodies/outside-body-rows.ts";
import type { Database } from "../driver/database.ts";
import { runTransaction } from "../driver/run-transaction.ts";
import { openDatabase } from "../file/open-database.ts";
import { toRowKey } from "../file/schema.ts";
import { toStoreError } from "../file/store-errors.ts";
import { createReader, type Reader } from "../read/reader.ts";
import { ScheduleTable } from "../schedules/schedule-table.ts";
import { checkPath } from "../store-options.ts";
import { Artifacts } from "../write/artifacts.ts";
import { LongTermTable } from "../write/long-term.ts";
import { PrunedRanges } from "../write/pruned-ranges.ts";
import { RemovedThreads } from "../write/removed-threads.ts";
import { getEncryptionState, setEncryptionState } from "./encryption-state.ts";
import { Reencryption } from "./reencrypt.ts";

/**
 * Encrypts a plain file: every thread is encrypted with the first key of `keys` for the thread, and the plain data is
 * overwritten. No store may have the file open. An interrupted call continues when repeated. Keep a backup until the
 * call returns. Throws `store_locked` while another process has the file open.
 */
export function encryptStore(path: string, encryption: Encryption): void {
  checkPath("encryptStore", path);
  const { db } = openDatabase(path);
  try {
    lockExclusively(db, path);
    if (getEncryptionState(db) === "complete") return;
    refuseOutsideBodies(db, path);
    const storeCipher = createStoreCipher(encryption);
    const namespaces = db.prepare<[], string>("SELECT DISTINCT namespace FROM long_term").pluck().all();
    // A missing key throws before anything is changed.
    for (const namespace of namespaces) storeCipher.getItemCipher(namespace);
    const schedules = db.prepare<[], string>("SELECT id FROM schedules").pluck().all();
    for (const schedule of schedules) storeCipher.getScheduleCipher(schedule);
    setEncryptionState(db, "started");
    deleteRemains(db);
    const plain = createReader(db);
    const artifacts = new Artifacts(db, { getCipher: () => undefined, putsOutside: false });
    const reencryption = new Reencryption(db, { reader: plain, artifacts });
    const threads = db.prepare<[], string>("SELECT id FROM threads WHERE secret IS NULL ORDER BY key").pluck().all();
    for (const thread of threads)
      runTransaction(db, "immediate", () => encryptThread(db, { plain, reencryption, storeCipher }, thread));
    runTransaction(db, "immediate", () => new LongTermTable(db, undefined).encryptAll(storeCipher));
    runTransaction(db, "immediate", () => new ScheduleTable(db, undefined).encryptAll(storeCipher));
    db.exec("DELETE FROM owners; DELETE FROM settings WHERE name GLOB 'owner:*'");
    // Plain data remains in free pages until then; a completed file contains none.
    db.exec("VACUUM");
    setEncryptionState(db, "complete");
  } catch (thrown) {
    throw toStoreError(thrown, { path });
  } finally {
    db.close();
  }
}

/** Deletes the rows that a crash left of deleted threads: nothing would encrypt them. */
function deleteRemains(db: Database): void {
  const removed = new RemovedThreads(db);
  const removePiece = (): boolean => runTransaction(db, "immediate", () => removed.removePiece());
  while (removePiece());
}

/** Bodies outside of the file are named by their plain hashes, and a call cannot change them with the file at once. */
function refuseOutsideBodies(db: Database, path: string): void {
  if (!new OutsideBodyRows(db).hasAny()) return;
  throw invalidOption({
    where: "encryptStore",
    option: "path",
    expected: "a file with its artifact bodies",
    found: `"${path}", whose bodies are outside`,
    fix: "Copy the threads with copyThread into a new encrypted store",
  });
}

/** In journal mode DELETE with exclusive locking, SQLite allows a single connection only, which keeps its lock. */
function lockExclusively(db: Database, path: string): void {
  let mode: unknown;
  try {
    mode = db.pragma("journal_mode = DELETE", { simple: true });
    // A journal that reappears after a power failure would roll back its transaction: EXTRA also syncs the deletion.
    db.pragma("synchronous = EXTRA");
    db.pragma("locking_mode = EXCLUSIVE");
    db.exec("BEGIN EXCLUSIVE");
    db.exec("COMMIT");
  } catch (cause) {
    throw createInUseError(path, cause);
  }
  if (mode !== "delete" && mode !== "memory") throw createInUseError(path);
}

function createInUseError(path: string, cause?: unknown): StatewrightError {
  return new StatewrightError("store_locked", {
    what: `"${path}" is open in another store`,
    next: "Close the file everywhere, then call encryptStore again",
    cause,
  });
}

function encryptThread(
  db: Database,
  {
    plain,
    reencryption,
    storeCipher,
  }: { readonly plain: Reader; readonly reencryption: Reencryption; readonly storeCipher: StoreCipher },
  thread: string,
): void {
  const secret = storeCipher.createSecret(thread);
  const cipher = storeCipher.getThreadCipher(thread, secret);
  rehash(db, plain, thread, cipher);
  for (const source of reencryption.listRowSources(thread)) {
    for (let after: number | undefined = -1; after !== undefined; ) {
      const { rows, last } = source.readPage(after, 500);
      for (const row of rows) row.read(undefined)(cipher);
      after = last;
    }
  }
  reencryption.putSecret(thread, secret);
}

/**
 * Recomputes the hashes of checkpoints and anchors with the secret of the thread; verifies the plain rows on the way.
 */
function rehash(db: Database, plain: Reader, thread: string, cipher: ThreadCipher): void {
  const prunedRanges = new PrunedRanges(db);
  const putHash = db.prepare<[string, number]>("UPDATE checkpoints SET hash = ? WHERE key = ?");
  const putAnchor = db.prepare<[string, string, number]>(
    "UPDATE anchors SET hash = ?, remaining_hash = ? WHERE key = ?",
  );
  const hashes = new Map<number, string>();
  const namespaces = plain.namespaces.list(thread);
  const anchors = namespaces.flatMap((namespace) =>
    prunedRanges.list({ thread, namespace, cipher: undefined }).map(({ id, deltas }) => ({
      key: toRowKey(namespace.key, id),
      id,
      remainingHash: hashRemainingDeltas(cipher, namespace.name, deltas),
    })),
  );
  for (const { id, remainingHash } of anchors) hashes.set(id, remainingHash);
  const checkpoints = namespaces.flatMap((namespace) =>
    plain.checkpoints.listIds(namespace).map((id) => ({ id, namespace })),
  );
  for (const { id, namespace } of checkpoints.sort((left, right) => left.id - right.id)) {
    for (const { row, deltas, writtenBy } of plain.checkpoints.list(thread, namespace, id - 1, 1)) {
      const parent = row.parent === undefined ? undefined : hashes.get(row.parent);
      hashes.set(id, hashCheckpoint(row, writtenBy, deltas, { parentHash: parent, cipher }));
    }
  }
  for (const { key, remainingHash } of anchors) putAnchor.run(remainingHash, remainingHash, key);
  for (const { id, namespace } of checkpoints) putHash.run(hashes.get(id) ?? "", toRowKey(namespace.key, id));
}
