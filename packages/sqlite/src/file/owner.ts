/**
 * Liveness of owners: every store that owns threads holds an exclusive lock on its own small file next to the
 * database.
 *
 * The kernel releases the lock when the process dies, in any way, and keeps it while the process is suspended. So an
 * owner with an available lock is dead, independent of any clock. Owner ids are never reused in a file.
 *
 * All functions run inside a write transaction of the database: no two processes check at the same time, and no owner
 * is visible between the insert of its row and its lock.
 */
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import Database from "better-sqlite3";
import { listNames } from "../rows/list-names.ts";
import { discard } from "./discard.ts";
import { getReservePath } from "./disk-reserve.ts";
import { isBusy } from "./store-errors.ts";

export interface Owner {
  /** Returns the owner id of this store; undefined before its first claim. */
  getId(): number | undefined;
  /** Registers this store as owner: inserts a row and acquires the lock. Removes the rows of dead owners. */
  register(at: number): number;
  /** Undoes a registration whose transaction was rolled back. */
  unregister(): void;
  /** Checks whether an owner is alive; removes the lock file of a dead owner. */
  isAlive(id: number): boolean;
  /** Returns true if an owner is known to be dead, which is final. */
  isDead(id: number): boolean;
  /** Lists all owners known to be dead. */
  listDead(): readonly number[];
  /** Describes an owner for error messages: its process id where known. */
  describe(id: number): string;
  /** Returns true if the file contains an owner, alive or dead. */
  hasOwners(): boolean;
  /** Deletes the row of this owner and of dead owners, inside the last transaction. */
  deleteRows(): void;
  /** Releases the lock and removes its file. */
  close(): void;
}

/**
 * Returns true if the file contains owners and all are dead. A live owner opened the file after the check for a log.
 */
export function hasOnlyDeadOwners(db: Database.Database, file: string): boolean {
  const ids = db.prepare<[], number>("SELECT key FROM owners").pluck();
  if (ids.get() === undefined) return false;
  const checkOwners = db.transaction(() => ids.all().length > 0 && !ids.all().some((id) => isLocked(file, id)));
  try {
    return checkOwners.immediate();
  } catch (thrown) {
    if (isBusy(thrown)) return false;
    throw thrown;
  }
}

/** Creates the owner of one open store; `file` is undefined for a store in memory, which no other process can open. */
export function createOwner(db: Database.Database, file: string | undefined): Owner {
  const insert = db.prepare<[number, number]>("INSERT INTO owners (pid, since) VALUES (?, ?)");
  const remove = db.prepare<[number]>("DELETE FROM owners WHERE key = ?");
  const ownerIds = db.prepare<[], number>("SELECT key FROM owners").pluck();
  const pidOfOwner = db.prepare<[number], number>("SELECT pid FROM owners WHERE key = ?").pluck();
  const dead = new Set<number>();
  let id: number | undefined;
  let lock: Database.Database | undefined;

  function deleteDeadOwners(): void {
    for (const other of ownerIds.all()) if (!isAlive(other)) remove.run(other);
  }

  function register(at: number): number {
    deleteDeadOwners();
    if (file !== undefined) removeStrayFiles(file, new Set(ownerIds.all()));
    for (;;) {
      const newId = Number(insert.run(process.pid, at).lastInsertRowid);
      if (file !== undefined) lock = tryLock(getLockPath(file, newId));
      if (file !== undefined && lock === undefined) continue;
      id = newId;
      return newId;
    }
  }

  function isAlive(other: number): boolean {
    if (other === id) return true;
    if (!dead.has(other) && file !== undefined && isLocked(file, other)) return true;
    dead.add(other);
    return false;
  }

  function close(): void {
    lock?.close();
    lock = undefined;
    if (id !== undefined && file !== undefined) discard(getLockPath(file, id));
    id = undefined;
  }

  return {
    getId: () => id,
    register,
    unregister: close,
    isAlive,
    isDead: (other) => dead.has(other),
    listDead: () => [...dead],
    describe: (other) => {
      const found = pidOfOwner.get(other);
      return found === undefined ? "another owner" : `process ${found}`;
    },
    hasOwners: () => ownerIds.get() !== undefined,
    deleteRows: () => {
      if (id !== undefined) remove.run(id);
      deleteDeadOwners();
    },
    close,
  };
}

function getLockPath(file: string, id: number): string {
  return `${file}-owner-${id}`;
}

/** Returns true if an owner holds its lock. Removes the files of a dead owner. */
function isLocked(file: string, id: number): boolean {
  const path = getLockPath(file, id);
  if (existsSync(path)) {
    const lock = tryLock(path);
    if (lock === undefined) return true;
    lock.close();
  }
  for (const leftover of [path, getReservePath(file, id)]) discard(leftover);
  return false;
}

/** Removes files of owners without a row, which died after their last write. */
function removeStrayFiles(file: string, ownerIds: ReadonlySet<number>): void {
  const prefix = `${basename(file)}-`;
  for (const name of listNames(dirname(file))) {
    if (!name.startsWith(prefix)) continue;
    const [, id] = /^(?:owner|reserve)-(\d+)$/.exec(name.slice(prefix.length)) ?? [];
    if (id !== undefined && !ownerIds.has(Number(id))) discard(join(dirname(file), name));
  }
}

/** Acquires a lock, held until the handle is closed; undefined if another process holds the lock. */
function tryLock(path: string): Database.Database | undefined {
  const lock = new Database(path, { timeout: 0 });
  try {
    lock.pragma("journal_mode = MEMORY");
    lock.exec("BEGIN EXCLUSIVE");
    return lock;
  } catch (thrown) {
    lock.close();
    if (isBusy(thrown)) return undefined;
    throw thrown;
  }
}
