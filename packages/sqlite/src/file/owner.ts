/**
 * Who lives: every store that owns threads holds an exclusive lock on a small file of its own beside the main one.
 *
 * The kernel lets the lock go when the process dies, however it dies, and keeps it while the process is stopped. So an
 * owner whose lock can be had is dead, whatever any clock says. Ids are never used twice in a file.
 *
 * Everything here runs inside a write transaction of the main file: no two processes look at the same time, and no
 * owner can be seen between its row and its lock.
 */
import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import Database from "better-sqlite3";
import { namesIn } from "../rows/list-names.ts";
import { discard } from "./discard.ts";
import { reservePath } from "./disk-reserve.ts";
import { isBusy } from "./store-errors.ts";

export interface Owner {
  /** This store's id among the owners, once it has taken a thread. */
  id(): number | undefined;
  /** Become an owner: a row and a lock. Owners found dead are cleared away. */
  register(at: number): number;
  /** The transaction in which it registered was rolled back. */
  unregister(): void;
  /** Tell whether the owner with this id lives; removes the lock file of a dead one. */
  isAlive(id: number): boolean;
  /** Whether an owner was found dead already, which it stays. */
  isDead(id: number): boolean;
  /** All that were found dead. */
  dead(): readonly number[];
  /** How people find the holder: its process id where it is known. */
  describe(id: number): string;
  /** Whether the file names an owner, living or dead. */
  isAnyNamed(): boolean;
  /** Take the row away, and those of owners found dead, inside the last transaction. */
  leave(): void;
  /** Let the lock go and remove its file. */
  close(): void;
}

/** Whether the file names owners, and none of them lives: who lives has opened it since it was looked at. */
export function namesNobodyAlive(db: Database.Database, file: string): boolean {
  const ids = db.prepare<[], number>("SELECT key FROM owners").pluck();
  if (ids.get() === undefined) return false;
  const look = db.transaction(() => ids.all().length > 0 && !ids.all().some((id) => isLocked(file, id)));
  try {
    return look.immediate();
  } catch (thrown) {
    if (isBusy(thrown)) return false;
    throw thrown;
  }
}

/** The owner that stands for one open store; `file` is absent for a store in memory, which nobody else can open. */
export function createOwner(db: Database.Database, file: string | undefined): Owner {
  const insert = db.prepare<[number, number]>("INSERT INTO owners (pid, since) VALUES (?, ?)");
  const remove = db.prepare<[number]>("DELETE FROM owners WHERE key = ?");
  const others = db.prepare<[], number>("SELECT key FROM owners").pluck();
  const pid = db.prepare<[number], number>("SELECT pid FROM owners WHERE key = ?").pluck();
  const dead = new Set<number>();
  let id: number | undefined;
  let held: Database.Database | undefined;

  function clearDead(): void {
    for (const other of others.all()) if (!isAlive(other)) remove.run(other);
  }

  function register(at: number): number {
    clearDead();
    if (file !== undefined) removeStrays(file, new Set(others.all()));
    for (;;) {
      const fresh = Number(insert.run(process.pid, at).lastInsertRowid);
      if (file !== undefined) held = tryLock(lockPath(file, fresh));
      if (file !== undefined && held === undefined) continue;
      id = fresh;
      return fresh;
    }
  }

  function isAlive(other: number): boolean {
    if (other === id) return true;
    if (!dead.has(other) && file !== undefined && isLocked(file, other)) return true;
    dead.add(other);
    return false;
  }

  function close(): void {
    held?.close();
    held = undefined;
    if (id !== undefined && file !== undefined) discard(lockPath(file, id));
    id = undefined;
  }

  return {
    id: () => id,
    register,
    unregister: close,
    isAlive,
    isDead: (other) => dead.has(other),
    dead: () => [...dead],
    describe: (other) => {
      const found = pid.get(other);
      return found === undefined ? "another owner" : `process ${found}`;
    },
    isAnyNamed: () => others.get() !== undefined,
    leave: () => {
      if (id !== undefined) remove.run(id);
      clearDead();
    },
    close,
  };
}

function lockPath(file: string, id: number): string {
  return `${file}-owner-${id}`;
}

/** Whether somebody holds the lock. What one that nobody holds has left is removed. */
function isLocked(file: string, id: number): boolean {
  const path = lockPath(file, id);
  if (existsSync(path)) {
    const lock = tryLock(path);
    if (lock === undefined) return true;
    lock.close();
  }
  for (const left of [path, reservePath(file, id)]) discard(left);
  return false;
}

/** Remove what owners have left whose rows are gone: they died after their last write. */
function removeStrays(file: string, named: ReadonlySet<number>): void {
  const own = `${basename(file)}-`;
  for (const name of namesIn(dirname(file))) {
    if (!name.startsWith(own)) continue;
    const [, id] = /^(?:owner|reserve)-(\d+)$/.exec(name.slice(own.length)) ?? [];
    if (id !== undefined && !named.has(Number(id))) discard(join(dirname(file), name));
  }
}

/** The lock, held until the handle is closed; undefined while another holds it. */
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
