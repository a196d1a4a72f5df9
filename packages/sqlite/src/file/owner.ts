/**
 * Liveness of owners: every store that owns threads holds an exclusive lock on a small file next to the database.
 *
 * The kernel releases the lock when the process dies, in any way, and keeps it while the process is suspended. So an
 * owner with an available lock is dead, independent of any clock. Owner ids are never reused in a file. A deleted
 * file proves nothing: the owner is dead only if the process is certainly dead.
 *
 * Rows of owners change inside write transactions: no owner is visible between the insert of the row and the lock.
 * Liveness is tested outside of transactions: the test reads files, and no other process waits for the result. Dead is
 * final. Two processes that test the same lock at the same moment may both find the lock held, and take a dead owner for
 * alive until the next test.
 */
import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import type { Database } from "../driver/database.ts";
import { type Driver, getDriver } from "../driver/driver.ts";
import { runTransaction } from "../driver/run-transaction.ts";
import { listNames } from "../rows/list-names.ts";
import { discard } from "./discard.ts";
import { getReservePath } from "./disk-reserve.ts";
import type { FileGuard } from "./file-guard.ts";
import { acquireOwnerLock, type LockKind, type OwnerLock, testOwnerLock } from "./owner-lock.ts";
import { getProcessIdentity, judgeProcess, type ProcessIdentity, parseProcessIdentity } from "./process-identity.ts";
import { isBusy } from "./store-errors.ts";
import { removeStaleTempFiles } from "./temp-file.ts";

export interface Owner {
  /** Returns the owner id of this store; undefined before its first claim. */
  getId(): number | undefined;
  /** Registers this store as owner: inserts a row and acquires the lock. Removes the rows of owners known to be dead. */
  register(at: number): number;
  /** Undoes a registration whose transaction was rolled back. */
  unregister(): void;
  /** Asks whether an owner is alive, outside of a write transaction; removes the disk reserve of a dead owner. */
  ask(id: number): boolean;
  /** Asks all owners of the file. */
  askAll(): void;
  /**
   * Returns whether an owner is alive, inside a write transaction. Throws {@link OwnerQuestion} for an owner that is
   * neither known to be dead nor one of {@link Owner.runWithLiving}.
   */
  isAlive(id: number): boolean;
  /** Runs a write that takes these owners, which were alive when asked, for alive. */
  runWithLiving<Value>(living: readonly number[], run: () => Value): Value;
  /** Lists the owners of the file that are not known to be dead, with this owner. */
  listLiving(): readonly number[];
  /** Returns true if an owner is known to be dead, which is final. */
  isDead(id: number): boolean;
  /** Lists all owners known to be dead. */
  listDead(): readonly number[];
  /** Describes an owner for error messages: its process id where known. */
  describe(id: number): string;
  /** Returns true if the file contains an owner, alive or dead. */
  hasOwners(): boolean;
  /** Deletes the row of this owner and of owners known to be dead, inside the last transaction. */
  deleteRows(): void;
  /** Called after the commit of deleted rows: removes the lock files of dead owners. */
  removeFiles(): void;
  /** Returns true if another owner, not known to be dead, was in the file in the last transaction. */
  hasLivingOthers(): boolean;
  /** Releases the lock. Removes its file, or marks the file as released if the row of the owner still exists. */
  close(): void;
}

/** Thrown inside a write transaction that needs to know if an owner lives: the question is asked, then the write again. */
export class OwnerQuestion extends Error {
  readonly owner: number;

  constructor(owner: number) {
    super(`owner ${owner}: expected an answer, got none. Ask before the write.`);
    this.owner = owner;
  }
}

/**
 * Returns true if the file contains owners and all are dead. A live owner opened the file after the check for a log.
 */
export function hasOnlyDeadOwners(db: Database, file: string): boolean {
  const ids = db.prepare<[], number>("SELECT key FROM owners").pluck();
  if (ids.get() === undefined) return false;
  const isLocked = createLivenessCheck(db, file);
  try {
    return runTransaction(db, "immediate", () => ids.all().length > 0 && !ids.all().some((id) => isLocked(id)));
  } catch (thrown) {
    if (isBusy(thrown)) return false;
    throw thrown;
  }
}

/** Creates the owner of an open store; `file` is undefined for a store in memory, which no other process can open. */
export function createOwner(db: Database, file: string | undefined, guard: FileGuard): Owner {
  return new FileOwner(db, file, guard);
}

function prepareStatements(db: Database) {
  return {
    insert: db.prepare<[number, number]>("INSERT INTO owners (pid, since) VALUES (?, ?)"),
    remove: db.prepare<[number]>("DELETE FROM owners WHERE key = ?"),
    ids: db.prepare<[], number>("SELECT key FROM owners").pluck(),
    find: db.prepare<[number], number>("SELECT 1 FROM owners WHERE key = ?").pluck(),
    pid: db.prepare<[number], number>("SELECT pid FROM owners WHERE key = ?").pluck(),
    putIdentity: db.prepare<[string, string]>("INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)"),
    removeIdentity: db.prepare<[string]>("DELETE FROM settings WHERE name = ?"),
  };
}

class FileOwner implements Owner {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #file: string | undefined;
  readonly #guard: FileGuard;
  readonly #driver: Driver;
  readonly #isLocked: (id: number) => boolean;
  readonly #dead: Set<number> = new Set();
  /** Owners that were alive when asked for the current write. */
  #living: readonly number[] = [];
  /** Owners whose rows are deleted by the current transaction. */
  readonly #deleted: Set<number> = new Set();
  #id: number | undefined;
  #lock: OwnerLock | undefined;
  #hasLivingOthers = false;

  constructor(db: Database, file: string | undefined, guard: FileGuard) {
    this.#sql = prepareStatements(db);
    this.#file = file;
    this.#guard = guard;
    this.#driver = getDriver(db);
    this.#isLocked = file === undefined ? () => false : createLivenessCheck(db, file);
  }

  getId(): number | undefined {
    return this.#id;
  }

  register(at: number): number {
    this.#deleted.clear();
    if (this.#file !== undefined) removeStrayFiles(this.#file, new Set(this.#sql.ids.all()));
    this.#deleteDeadOwners();
    for (;;) {
      const id = Number(this.#sql.insert.run(process.pid, at).lastInsertRowid);
      if (this.#file !== undefined && !this.#acquire(this.#file, id)) continue;
      this.#id = id;
      return id;
    }
  }

  unregister(): void {
    this.#guard.removeOwnerFile();
    this.#lock?.release("unmarked");
    this.#lock = undefined;
    if (this.#id !== undefined && this.#file !== undefined) discard(getLockPath(this.#file, this.#id));
    this.#id = undefined;
    this.#deleted.clear();
  }

  ask(other: number): boolean {
    if (other === this.#id) return true;
    if (!this.#dead.has(other) && this.#isLocked(other)) return true;
    this.#bury(other);
    return false;
  }

  askAll(): void {
    for (const id of this.#sql.ids.all()) this.ask(id);
  }

  isAlive(other: number): boolean {
    if (other === this.#id) return true;
    if (this.#dead.has(other)) return false;
    if (this.#living.includes(other)) return true;
    // An owner deletes its row when it closes, and others delete the row of a dead owner.
    if (this.#sql.find.get(other) !== undefined) throw new OwnerQuestion(other);
    this.#bury(other);
    return false;
  }

  runWithLiving<Value>(living: readonly number[], run: () => Value): Value {
    this.#living = living;
    try {
      return run();
    } finally {
      this.#living = [];
    }
  }

  listLiving(): readonly number[] {
    return this.#sql.ids.all().filter((id) => !this.#dead.has(id));
  }

  isDead(other: number): boolean {
    return this.#dead.has(other);
  }

  listDead(): readonly number[] {
    return [...this.#dead];
  }

  describe(other: number): string {
    const found = this.#sql.pid.get(other);
    return found === undefined ? "another owner" : `process ${found}`;
  }

  hasOwners(): boolean {
    return this.#sql.ids.get() !== undefined;
  }

  deleteRows(): void {
    this.#deleted.clear();
    if (this.#id !== undefined) this.#deleteRow(this.#id);
    this.#deleteDeadOwners();
    this.#hasLivingOthers = this.hasOwners();
  }

  removeFiles(): void {
    for (const id of this.#deleted)
      if (id !== this.#id && this.#file !== undefined) discard(getLockPath(this.#file, id));
    if (this.#id === undefined || !this.#deleted.has(this.#id)) this.#deleted.clear();
    else this.unregister();
  }

  hasLivingOthers(): boolean {
    return this.#hasLivingOthers;
  }

  close(): void {
    this.#guard.removeOwnerFile();
    this.#lock?.release("marked");
    this.#lock = undefined;
    this.#id = undefined;
  }

  #acquire(file: string, id: number): boolean {
    const path = getLockPath(file, id);
    this.#lock = acquireOwnerLock(path, this.#driver);
    if (this.#lock === undefined) return false;
    this.#sql.putIdentity.run(
      getIdentityName(id),
      JSON.stringify(getProcessIdentity({ lock: this.#lock.kind, inode: getInode(file) })),
    );
    this.#guard.addOwnerFile(path, this.#lock.kind);
    return true;
  }

  #deleteDeadOwners(): void {
    for (const other of this.#sql.ids.all()) if (this.#dead.has(other)) this.#deleteRow(other);
  }

  #bury(id: number): void {
    this.#dead.add(id);
    if (this.#file !== undefined) discard(getReservePath(this.#file, id));
  }

  #deleteRow(id: number): void {
    this.#sql.remove.run(id);
    this.#sql.removeIdentity.run(getIdentityName(id));
    this.#deleted.add(id);
  }
}

function getLockPath(file: string, id: number): string {
  return `${file}-owner-${id}`;
}

/** Returns the name of the setting with the process of an owner. */
function getIdentityName(id: number): string {
  return `owner:${id}`;
}

/** Returns the inode of a file; 0 for a deleted file. */
function getInode(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.ino ?? 0;
}

/** Creates the check whether an owner is alive, or cannot be proven dead. `testLock` tests the lock of an owner file. */
export function createLivenessCheck(
  db: Database,
  file: string,
  testLock: (path: string, kind: LockKind) => ReturnType<typeof testOwnerLock> = (path, kind) =>
    testOwnerLock(path, kind, getDriver(db)),
): (id: number) => boolean {
  const selectIdentity = db.prepare<[string], string>("SELECT value FROM settings WHERE name = ?").pluck();
  /** Identities never change: a file never reuses the id of an owner. */
  const identities = new Map<number, ProcessIdentity>();
  const getIdentity = (id: number): ProcessIdentity | undefined => {
    const known = identities.get(id);
    if (known !== undefined) return known;
    const text = selectIdentity.get(getIdentityName(id));
    const identity = text === undefined ? undefined : parseProcessIdentity(text);
    if (identity !== undefined) identities.set(id, identity);
    return identity;
  };
  return (id) => {
    const path = getLockPath(file, id);
    const size = statSync(path, { throwIfNoEntry: false })?.size;
    // Content marks the file of an owner that ended without deleting its row.
    if (size !== undefined && size > 0) return false;
    const identity = getIdentity(id);
    // A copy of the file has no owner, unless a copied owner file is locked.
    const isOwnFile = identity?.inode === getInode(file);
    const judged = identity === undefined || !isOwnFile ? "unknown" : judgeProcess(identity);
    if (judged !== "unknown") return judged === "alive";
    if (size === undefined) return isOwnFile;
    return testLock(path, identity?.lock ?? "sqlite") !== "free";
  };
}

/** Removes files of owners without a row, which died after their last write, and temporary files of dead processes. */
function removeStrayFiles(file: string, ownerIds: ReadonlySet<number>): void {
  const prefix = `${basename(file)}-`;
  const names = listNames(dirname(file));
  for (const name of names) {
    if (!name.startsWith(prefix)) continue;
    const [, id] = /^(?:owner|reserve)-(\d+)$/.exec(name.slice(prefix.length)) ?? [];
    if (id !== undefined && !ownerIds.has(Number(id))) discard(join(dirname(file), name));
  }
  removeStaleTempFiles(file, names);
}
