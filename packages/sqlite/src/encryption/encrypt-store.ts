/** `encryptStore`: a plain file becomes an encrypted one, once and for all of its threads. */
import { StatewrightError } from "@statewright/core";
import type { Database } from "better-sqlite3";
import { openDatabase } from "../file/open-database.ts";
import { keyAt } from "../file/schema.ts";
import { asStoreError } from "../file/store-errors.ts";
import { createReader, type Reader } from "../read/reader.ts";
import { checkpointHash } from "../rows/rows.ts";
import { createArtifacts } from "../write/artifacts.ts";
import { createLongTerm } from "../write/long-term.ts";
import { createCuts, keptHash } from "../write/pruned-ranges.ts";
import { createVault, type Encryption, type Seals, type Vault } from "./cipher.ts";
import { sealingOf, setSealing } from "./encryption-state.ts";
import { createSweeper, type Sweeper } from "./reencrypt.ts";

/**
 * Encrypt a plain file: every thread is sealed with the first key that `keys` gives for it, and what was plain is
 * overwritten. No store may have the file open. What was cut short goes on where it stood when it is called again. Keep a
 * backup until it is done. Throws `store_locked` while another has the file open.
 */
export function encryptStore(path: string, encryption: Encryption): void {
  const { db } = openDatabase(path);
  try {
    takeAlone(db, path);
    if (sealingOf(db) === "whole") return;
    const vault = createVault(encryption);
    const namespaces = db.prepare<[], string>("SELECT DISTINCT namespace FROM long_term").pluck().all();
    // A key that is missing is missed before anything is changed.
    for (const namespace of namespaces) vault.namespace(namespace);
    setSealing(db, "begun");
    const plain = createReader(db);
    const artifacts = createArtifacts(db, () => undefined);
    const sweeper = createSweeper(db, { reader: plain, artifacts });
    const threads = db.prepare<[], string>("SELECT id FROM threads WHERE secret IS NULL ORDER BY key").pluck().all();
    const seal = db.transaction((thread: string) => sealThread(db, { plain, sweeper, vault }, thread));
    for (const thread of threads) seal.immediate(thread);
    db.transaction(() => createLongTerm(db, undefined).sealAll(vault)).immediate();
    db.exec("DELETE FROM owners");
    // What was plain stands in free pages until then: a file that is whole has none of it.
    db.exec("VACUUM");
    setSealing(db, "whole");
  } catch (thrown) {
    throw asStoreError(thrown, { path });
  } finally {
    db.close();
  }
}

/** In this mode of its journal SQLite lets a file be written by one connection alone, which keeps its lock. */
function takeAlone(db: Database, path: string): void {
  let mode: unknown;
  try {
    mode = db.pragma("journal_mode = DELETE", { simple: true });
    // A journal that came back after a power cut would undo its transaction: that it is gone is waited for too.
    db.pragma("synchronous = EXTRA");
    db.pragma("locking_mode = EXCLUSIVE");
    db.exec("BEGIN EXCLUSIVE");
    db.exec("COMMIT");
  } catch (cause) {
    throw inUse(path, cause);
  }
  if (mode !== "delete" && mode !== "memory") throw inUse(path);
}

function inUse(path: string, cause?: unknown): StatewrightError {
  return new StatewrightError("store_locked", {
    what: `"${path}" is open in another store`,
    next: "Close it everywhere, then call encryptStore again",
    cause,
  });
}

function sealThread(
  db: Database,
  { plain, sweeper, vault }: { readonly plain: Reader; readonly sweeper: Sweeper; readonly vault: Vault },
  thread: string,
): void {
  const secret = vault.secret(thread);
  const seals = vault.of(thread, secret);
  rehash(db, plain, thread, seals);
  for (const sweep of sweeper.sweeps(thread)) {
    for (let after: number | undefined = -1; after !== undefined; ) {
      const { rows, last } = sweep.page(after, 500);
      for (const row of rows) row.read(undefined)(seals);
      after = last;
    }
  }
  sweeper.secret(thread, secret);
}

/** The hashes of checkpoints and anchors anew, under the secret of the thread; the plain ones are checked on the way. */
function rehash(db: Database, plain: Reader, thread: string, seals: Seals): void {
  const cuts = createCuts(db);
  const putHash = db.prepare<[string, number]>("UPDATE checkpoints SET hash = ? WHERE key = ?");
  const putAnchor = db.prepare<[string, string, number]>("UPDATE anchors SET hash = ?, kept = ? WHERE key = ?");
  const hashes = new Map<number, string>();
  const lines = plain.lines(thread);
  const lefts = lines.flatMap((line) =>
    cuts.of({ thread, line, seals: undefined }).map(({ id, deltas }) => ({
      key: keyAt(line.key, id),
      id,
      kept: keptHash(seals, line.name, deltas),
    })),
  );
  for (const { id, kept } of lefts) hashes.set(id, kept);
  const places = lines.flatMap((line) => plain.ids(line).map((id) => ({ id, line })));
  for (const { id, line } of places.sort((one, other) => one.id - other.id)) {
    for (const { row, deltas, writtenBy } of plain.own(thread, line, id - 1, 1)) {
      const parent = row.parent === undefined ? undefined : hashes.get(row.parent);
      hashes.set(id, checkpointHash(row, writtenBy, deltas, parent, seals));
    }
  }
  for (const { key, kept } of lefts) putAnchor.run(kept, kept, key);
  for (const { id, line } of places) putHash.run(hashes.get(id) ?? "", keyAt(line.key, id));
}
