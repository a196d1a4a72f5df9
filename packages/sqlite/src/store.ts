/** Store in one SQLite file: synchronous reads, and writes through the single writer. */

import { type LongTermVectors, StatewrightError, type Store, type World } from "@statewright/core";
import { checkId, systemWorld } from "@statewright/core/adapter";
import {
  type BranchWrite,
  type Claim,
  type ClaimRequest,
  type Commit,
  type InboxMessageWrite,
  type LongTermChange,
  longTermRules,
  type QueueWrite,
  storeRules,
} from "@statewright/core/store";
import type { Database } from "better-sqlite3";
import { createStoreCipher, type Encryption } from "./encryption/cipher.ts";
import { Reencryption } from "./encryption/reencrypt.ts";
import { type Rotation, rotateAll, rotateItems, rotateThread } from "./encryption/rotation.ts";
import { backUpDatabase } from "./file/back-up-database.ts";
import type { BackupOptions } from "./file/backup-options.ts";
import { createDiskReserve } from "./file/disk-reserve.ts";
import type { Durability } from "./file/durability.ts";
import { fsyncDatabase } from "./file/fsync-database.ts";
import { addLastGood } from "./file/last-good.ts";
import { type OpenedDatabase, openDatabase } from "./file/open-database.ts";
import { createOwner } from "./file/owner.ts";
import { retryBusy } from "./file/retry-busy.ts";
import { toStoreError } from "./file/store-errors.ts";
import { vacuum } from "./file/vacuum.ts";
import { createReader, type Reader } from "./read/reader.ts";
import { createThreadExporter } from "./rows/thread-export.ts";
import { Verifier } from "./verify/verifier.ts";
import type { VerifyReport } from "./verify/verify-report.ts";
import { verifyStore } from "./verify/verify-store.ts";
import { Artifacts } from "./write/artifacts.ts";
import { type ClaimedThread, forgetNamespace } from "./write/claimed-thread.ts";
import type { DeferredClaim } from "./write/claims.ts";
import { Committer, createLockedError } from "./write/committer.ts";
import { LongTermTable } from "./write/long-term.ts";
import { PrunedRanges } from "./write/pruned-ranges.ts";
import { createWriter, type Writer } from "./write/writer.ts";

/** Store in a SQLite file, with operations on the file. */
export interface SqliteStore extends Store {
  /**
   * Writes a copy of the file as of one point in time, concurrently with writers. Throws `store_exists` for an
   * existing file without `overwrite`, and `store_locked` if the target is open in another process.
   */
  backup(path: string, options?: BackupOptions): Promise<void>;
  /**
   * Verifies every row of a thread, or of all threads: each checkpoint chain from its anchor on, and each checksum.
   */
  verify(thread?: string): Promise<VerifyReport>;
  /**
   * Re-encrypts all values not encrypted with the newest key, of a thread or of all threads. Returns the number of
   * rows.
   */
  rotate(thread?: string): Promise<number>;
}

export interface SqliteStoreOptions {
  /**
   * Durability after a power failure: `full` loses no acknowledged commit; `normal` may lose the last commits.
   * Default: `full`.
   */
  readonly durability?: Durability;
  /** World for scheduling commits and waits. Default: the system's. */
  readonly world?: World;
  /** Maximum size of the file in bytes; larger writes throw `store_full`. No limit by default. */
  readonly maxBytes?: number;
  /**
   * Allowed location of the file: a `local` disk, or `any` file system, including network file systems. Default:
   * `local`.
   */
  readonly fileSystem?: "local" | "any";
  /**
   * Encrypts the content of threads with keys of 32 bytes: the first of `keys` for a thread encrypts, all of them
   * decrypt. Word search is not available for encrypted items.
   */
  readonly encryption?: Encryption;
  /** Embedding of items in the long-term store, for similarity search. */
  readonly longTerm?: LongTermVectors;
}

/**
 * Creates a store in the SQLite file at `path`; `":memory:"` creates a store in this process, for tests. Throws
 * `invalid_option`, `store_corrupt` for a foreign or modified file, `store_newer`, `store_locked`, `store_full`.
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SqliteStore {
  checkOptions(path, options);
  const { durability = "full", world = systemWorld(), encryption, fileSystem } = options;
  const opened = openDatabase(path, {
    durability,
    withKeys: encryption !== undefined,
    allowRemote: fileSystem === "any",
  });
  if (opened.isLogMissing)
    world.log(
      "warn",
      "the file was copied without its write-ahead log, or the log was removed: the latest writes may be missing",
      { path },
    );
  try {
    return createStore(opened, path, { ...options, durability, world });
  } catch (thrown) {
    opened.db.close();
    throw toStoreError(thrown, { path });
  }
}

function createStore(
  { db, file }: OpenedDatabase,
  path: string,
  options: SqliteStoreOptions & Required<Pick<SqliteStoreOptions, "durability" | "world">>,
): SqliteStore {
  const { durability, world, maxBytes, encryption } = options;
  const storeCipher = encryption === undefined ? undefined : createStoreCipher(encryption);
  const owner = createOwner(db, file);
  const reader = createReader(db, storeCipher, (fault) =>
    world.log("error", "a list skipped a damaged row", {
      ...fault.place,
      error: fault.message,
    }),
  );
  const artifacts = new Artifacts(db, (thread) => reader.ciphers.get(thread));
  const items = new LongTermTable(db, storeCipher);
  const longTerm = {
    apply: (changes: readonly LongTermChange[], at: number) => eraseSecurely(db, () => items.apply(changes, at)),
  };
  const writer = createWriter(db, { owner, reader, storeCipher, artifacts, longTerm });
  const exportThread = createThreadExporter(db, { reader, prunedRanges: new PrunedRanges(db), artifacts });
  const reencryption = new Reencryption(db, { reader, artifacts });
  const verifier = new Verifier(db, {
    reader,
    prunedRanges: new PrunedRanges(db),
    reencryption,
    artifacts,
    longTerm: items,
  });
  const beginReadTransaction = db.prepare("BEGIN");
  const commitRead = db.prepare("COMMIT");
  const rollbackRead = db.prepare("ROLLBACK");
  const reserve = createDiskReserve(db, file, maxBytes);
  const committer = new Committer(db, world, reserve.runWithReserve);
  const threads: Map<string, ClaimedThread> = new Map();
  /** Released threads whose release could not be written: their rows still contain this owner. */
  const failedReleases: Set<ClaimedThread> = new Set();
  /** Claims of starting runs, written with the first commit of the run. */
  const deferred: Map<string, DeferredClaim> = new Map();
  let closed = false;
  let commitsLeft = 0;

  function write<Value>(
    thread: string | undefined,
    run: () => Value,
    onDone: (value: Value) => void = () => undefined,
    undo: () => void = () => undefined,
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (closed) throw storeRules.createClosedError("sqlite");
      let value: Value;
      let registered = false;
      committer.add({
        ...(thread === undefined ? {} : { thread }),
        run: () => {
          const ownerBefore = owner.getId();
          reader.ciphers.forget();
          try {
            value = run();
          } finally {
            registered = owner.getId() !== ownerBefore;
          }
        },
        undo: () => {
          undo();
          if (!registered) return;
          reserve.close();
          owner.unregister();
        },
        onCommitted: (failure) => {
          if (failure !== undefined)
            return reject(thread === undefined ? failure : addLastGood(failure, reader, thread));
          if (registered) commitsLeft = commitsUntilCheckpoint;
          onDone(value);
          resolve(value);
        },
      });
    });
  }

  async function read<Value>(operation: (reader: Reader) => Value, thread?: string): Promise<Value> {
    if (closed) throw storeRules.createClosedError("sqlite");
    reader.ciphers.forget();
    try {
      // One transaction for the whole read: other processes may delete and prune meanwhile.
      beginReadTransaction.run();
      const value = operation(reader);
      commitRead.run();
      return value;
    } catch (thrown) {
      const error = toStoreError(thrown, thread === undefined ? {} : { thread });
      throw thread === undefined ? error : addLastGood(error, reader, thread);
    } finally {
      if (db.inTransaction) rollbackRead.run();
    }
  }

  /** A single statement needs no read transaction. */
  function isInboxEmpty(thread: string): boolean {
    try {
      return !reader.inbox.hasMessages();
    } catch (thrown) {
      throw toStoreError(thrown, { thread });
    }
  }

  /** Reads data with the effective status of runs: checks the liveness of unknown owners first. */
  async function readStatus<Value>(
    operation: (reader: Reader, dead: readonly number[]) => Value,
    thread?: string,
    listOwners: (reader: Reader) => readonly number[] = (from) => from.threads.listActiveOwners(thread),
  ): Promise<Value> {
    const isKnown = (id: number): boolean => id === owner.getId() || owner.isDead(id);
    const unknownOwners = (await read(listOwners, thread)).filter((id) => !isKnown(id));
    // Liveness is checked inside a write transaction, because no other process checks at the same time there.
    if (unknownOwners.length > 0) await write(thread, () => unknownOwners.map((id) => owner.isAlive(id)));
    return await read((from) => operation(from, owner.listDead()), thread);
  }

  function commit(commit: Commit, onCommitted: (failure?: StatewrightError, queued?: number) => void): void {
    if (closed) {
      world.schedule.soon(() => onCommitted(storeRules.createClosedError("sqlite")));
      return;
    }
    const deferredClaim = deferred.get(commit.thread);
    if (deferredClaim?.claim.epoch === commit.epoch && isReleaseOnly(commit)) {
      deferred.delete(commit.thread);
      world.schedule.soon(() => onCommitted(undefined, deferredClaim.claim.queued));
      return;
    }
    let claimed: ClaimedThread | undefined;
    let takenClaim: DeferredClaim | undefined;
    let queued: number | undefined;
    committer.add({
      thread: commit.thread,
      usesReserve: commit.release === true && commit.checkpoint === undefined,
      run: () => {
        takenClaim = undefined;
        if (deferred.get(commit.thread)?.claim.epoch === commit.epoch) {
          takenClaim = claimDeferred(commit.thread);
          if (takenClaim === undefined) throw storeRules.createFencedError(commit);
        }
        claimed = threads.get(commit.thread);
        queued = writer.commits.write(commit, claimed);
      },
      undo: () => {
        restoreDeferred(commit.thread, takenClaim);
        if (claimed !== undefined)
          for (const namespace of [commit.branch, ...(commit.parentJournals ?? []).map(({ namespace }) => namespace)])
            forgetNamespace(claimed, namespace);
      },
      onCommitted: (failure) => {
        updateClaim(commit, failure);
        onCommitted(failure, queued);
        if (commitsLeft > 0 && --commitsLeft === 0 && !checkpointLog(db, world, "PASSIVE"))
          commitsLeft = commitsUntilCheckpoint;
      },
    });
  }

  /** Claims the thread of a starting run together with its first write; undefined if the thread has changed. */
  function claimDeferred(thread: string): DeferredClaim | undefined {
    const deferredClaim = deferred.get(thread);
    reader.ciphers.forget();
    const claimed = deferredClaim?.claimThread();
    if (claimed === undefined) return undefined;
    deferred.delete(thread);
    threads.set(thread, claimed);
    return deferredClaim;
  }

  /** Restores a deferred claim after the write was rolled back. */
  function restoreDeferred(thread: string, takenClaim: DeferredClaim | undefined): void {
    if (takenClaim === undefined) return;
    threads.delete(thread);
    deferred.set(thread, takenClaim);
  }

  /** Writes to a thread, together with its deferred claim: a new thread exists only after the claim. */
  function writeWithDeferredClaim<Value>(thread: string, run: () => Value): Promise<Value> {
    let takenClaim: DeferredClaim | undefined;
    const put = (): Value => {
      takenClaim = claimDeferred(thread);
      return run();
    };
    return write(thread, put, undefined, () => restoreDeferred(thread, takenClaim));
  }

  /** Defers the claim of a starting run if the thread has no owner. */
  function deferClaim(request: ClaimRequest): Claim | undefined {
    const self = owner.getId();
    if (self === undefined || closed) return undefined;
    refuseDeferred(request.thread);
    const deferredClaim = writer.claims.defer(request);
    if (deferredClaim === undefined) return undefined;
    reserve.acquire(self);
    deferred.set(request.thread, deferredClaim);
    return deferredClaim.claim;
  }

  /** Throws `thread_busy` for a thread with a deferred claim, which is not in the file yet. */
  function refuseDeferred(thread: string): void {
    if (deferred.has(thread)) throw storeRules.createBusyError(thread, owner.describe(owner.getId() ?? 0));
  }

  /** Updates the claim of a thread after a commit. */
  function updateClaim({ thread, epoch, release }: Commit, failure: StatewrightError | undefined): void {
    if (failure?.code === "fenced" && deferred.get(thread)?.claim.epoch === epoch) deferred.delete(thread);
    const claimed = threads.get(thread);
    if (claimed?.epoch !== epoch) return;
    if (failure === undefined ? release === true : failure.code === "fenced") threads.delete(thread);
    // The row still contains this live owner: the next claim or fork in this store must not take it for an active
    // run.
    else if (release === true) {
      claimed.isReleased = true;
      failedReleases.add(claimed);
    }
  }

  /** Retries failed releases, so that other processes can find and claim the threads. */
  async function retryReleases(): Promise<void> {
    const pending = [...failedReleases].filter((claimed) => threads.get(claimed.id) === claimed);
    failedReleases.clear();
    if (pending.length === 0) return;
    const discardClaims = (): void => {
      for (const claimed of pending) if (threads.get(claimed.id) === claimed) threads.delete(claimed.id);
    };
    try {
      const release = (): void => {
        for (const claimed of pending) writer.threads.release(claimed);
      };
      await write(undefined, release, discardClaims);
    } catch (error) {
      for (const held of pending) failedReleases.add(held);
      world.log("debug", "releasing threads failed again", {
        count: pending.length,
        error: toStoreError(error).message,
      });
    }
  }

  /** Returns the epoch of a release that could not be written. */
  function getReleasedEpoch(thread: string): number | undefined {
    const claimed = threads.get(thread);
    return claimed?.isReleased === true ? claimed.epoch : undefined;
  }

  async function rotateEverything(rotation: Rotation): Promise<number> {
    const until = await read(() => verifier.getNewestThreadKey());
    const threadRows = await rotateAll(rotation, write, (after) => read(() => verifier.listThreads(after, until)));
    return threadRows + (await rotateItems(items, (operation) => write(undefined, operation)));
  }

  function isClosed(): boolean {
    return closed;
  }

  /** Releases the threads if the file contains an owner; local resources are released despite disk errors. */
  function closeStore(): void {
    try {
      committer.close(() => (mayHaveOwners() ? createFinalJob(writer, threads, owner.deleteRows) : undefined));
    } finally {
      reserve.close();
      owner.close();
      closeDatabase(db, world);
    }
  }

  /** Returns true unless the file certainly contains no owner. */
  function mayHaveOwners(): boolean {
    try {
      return owner.hasOwners();
    } catch {
      return true;
    }
  }

  return {
    name: "sqlite",
    local: path === ":memory:",
    claim: async (request: ClaimRequest) => {
      checkId("thread", request.thread);
      if (request.branch !== undefined) checkId("branch", request.branch);
      const deferredClaim =
        request.startsRun === true ? await read(() => deferClaim(request), request.thread) : undefined;
      if (deferredClaim !== undefined) return deferredClaim;
      const { claim } = await write(
        request.thread,
        () => {
          refuseDeferred(request.thread);
          const claimed = writer.claims.claim(request, getReleasedEpoch(request.thread));
          // Reserves disk space for the final write of a starting run.
          reserve.acquire(owner.getId() ?? 0);
          return claimed;
        },
        ({ claimed }) => threads.set(claimed.id, claimed),
      );
      return claim;
    },
    commit,
    branch: async (fork: BranchWrite) => {
      checkId("thread", fork.thread);
      checkId("branch", fork.branch);
      return await write(fork.thread, () => {
        refuseDeferred(fork.thread);
        return writer.forks.create(fork, getReleasedEpoch(fork.thread));
      });
    },
    enqueue: async (put: QueueWrite) => {
      checkId("thread", put.thread);
      return await writeWithDeferredClaim(put.thread, () => writer.queue.enqueue(put));
    },
    dequeue: (thread, run, ended) => write(thread, () => writer.queue.dequeue(thread, run, ended)),
    post: async (message: InboxMessageWrite) => {
      checkId("thread", message.thread);
      return await writeWithDeferredClaim(message.thread, () => writer.inbox.post(message));
    },
    thread: (id) => readStatus((from, dead) => from.threads.get(id, dead), id),
    threads: async (filter = {}) => {
      const wanted = storeRules.checkThreadFilter(filter);
      return await readStatus((from, dead) => from.threads.list(filter, wanted, dead));
    },
    branches: (thread) => read((from) => from.namespaces.listBranches(thread), thread),
    runs: async (filter = {}) => {
      const wanted = storeRules.checkRunFilter(filter);
      return await readStatus((from, dead) => from.runs.list(filter, wanted, dead), filter.thread);
    },
    claimable: async (page) => {
      storeRules.checkClaimablePage(page);
      if (failedReleases.size > 0) await retryReleases();
      const owners = page.kind === "queued" ? (from: Reader) => from.threads.listQueueOwners() : undefined;
      return await readStatus((from, dead) => from.runs.listClaimable(page, dead), undefined, owners);
    },
    checkpoint: (thread, id) => read((from) => from.checkpoints.get(thread, id), thread),
    writtenBy: (thread, checkpoint) => read((from) => from.checkpoints.getGraphVersion(thread, checkpoint), thread),
    head: (thread, branch) => read((from) => from.checkpoints.getHead(thread, branch), thread),
    history: (thread, page) =>
      read((from) => {
        storeRules.checkFilter("history", page, ["branch", "before"]);
        return from.checkpoints.getHistory(thread, page);
      }, thread),
    state: (thread, checkpoint) => read((from) => from.states.get(thread, checkpoint), thread),
    effects: (thread, branch, step) => read((from) => from.effects.list(thread, branch, step), thread),
    interrupts: (thread, branch) => read((from) => from.interrupts.list(thread, branch), thread),
    events: (thread, page) =>
      read((from) => {
        storeRules.checkFilter("events", page, ["after", "from"]);
        return from.events.list(thread, page);
      }),
    openInterrupts: (filter = {}) =>
      read((from) => {
        storeRules.checkFilter("openInterrupts", filter, storeRules.openInterruptFilterKeys);
        return from.interrupts.listOpen(filter);
      }),
    inbox: async (thread, branch) => {
      if (closed) throw storeRules.createClosedError("sqlite");
      return isInboxEmpty(thread) ? [] : await read((from) => from.inbox.listWaiting(thread, branch), thread);
    },
    timers: (filter = {}) =>
      read((from) => {
        storeRules.checkFilter("timers", filter, ["thread", "dueBy"]);
        return from.timers.list(filter);
      }),
    longTerm: {
      ...(options.longTerm === undefined ? {} : { vectors: options.longTerm }),
      get: (location, at) => read(() => items.get(location, at)),
      page: (query) => read(() => items.listPage(query)),
      write: (changes, at) => write(undefined, () => longTerm.apply(changes, at)),
      refresh: (touches) => write(undefined, () => items.refresh(touches)),
      sweep: (at, limit) => write(undefined, () => eraseSecurely(db, () => items.sweep(at, limit))),
    },
    artifacts: {
      list: (thread, filter = {}) =>
        read(() => {
          storeRules.checkFilter("artifacts", filter, ["run", "key"]);
          return artifacts.list(thread, filter);
        }, thread),
      read: (thread, key, range) =>
        read(() => {
          if (range !== undefined) storeRules.checkRange(range);
          return artifacts.read(thread, key, range);
        }, thread),
      delete: (thread, key) => write(thread, () => eraseSecurely(db, () => artifacts.remove(thread, key))),
    },
    delete: async (id) => {
      await write(
        id,
        () => {
          refuseDeferred(id);
          eraseSecurely(db, () => writer.remove(id, getReleasedEpoch(id)));
        },
        () => threads.delete(id),
      );
    },
    exportThread: (id) => read(() => exportThread(id), id),
    importThread: async (threadExport) => {
      await write(threadExport.id, () => {
        if (deferred.has(threadExport.id)) throw storeRules.createThreadExistsError(threadExport.id);
        writer.threadImport.insert(threadExport);
      });
    },
    prune: async (prune) => {
      const pieces = writer.retention.prune(prune);
      for (let piece = pieces.next(); ; piece = pieces.next()) {
        if (piece.done === true) return piece.value;
        const { kind, run } = piece.value;
        if (kind === "writes") await write(prune.thread, () => eraseSecurely(db, run));
        else if (kind === "reads") await read(run, prune.thread);
        // Yields to other work; a write step has already waited for its turn.
        if (kind !== "writes") await new Promise<void>((resolve) => void world.schedule.soon(resolve));
      }
    },
    vacuum: () => vacuum(db, world, isClosed),
    backup: async (target, backup = {}) => {
      if (closed) throw storeRules.createClosedError("sqlite");
      storeRules.checkKeys("backup", backup, ["overwrite"]);
      await backUpDatabase(db, target, backup);
    },
    verify: (thread) => verifyStore(verifier, (operation) => read(operation, thread), thread),
    rotate: async (thread) => {
      if (storeCipher === undefined)
        throw createOptionError("a store without encryption has no keys to rotate", "Pass encryption: { keys }");
      const rotation = { reader, storeCipher, reencryption };
      const rows =
        thread === undefined ? await rotateEverything(rotation) : await rotateThread(rotation, write, thread);
      // The caller may discard an older key now: a power failure must not restore values encrypted with it.
      if (durability !== "full" && !(await retryBusy(world, isClosed, () => fsyncDatabase(db))))
        throw createLockedError();
      return rows;
    },
    close: () => {
      if (closed) return;
      closed = true;
      closeStore();
    },
  };
}

/** Returns true if a commit only releases its thread. */
function isReleaseOnly({
  thread: _,
  branch: __,
  epoch: ___,
  seq: ____,
  after: _____,
  release,
  ...parts
}: Commit): boolean {
  const isEmpty = (part: unknown): boolean => part === undefined || (Array.isArray(part) && part.length === 0);
  return release === true && Object.values(parts).every(isEmpty);
}

/** Creates the last write: releases all threads, so that the next owner does not take this store for crashed. */
function createFinalJob(writer: Writer, threads: ReadonlyMap<string, ClaimedThread>, deleteOwnerRows: () => void) {
  return {
    run: () => {
      for (const claimed of threads.values()) writer.threads.release(claimed);
      deleteOwnerRows();
    },
    undo: () => undefined,
    onCommitted: () => undefined,
  };
}

/** Checkpoints the log into the file if possible. Otherwise nothing is lost: the next open reads the log. */
function closeDatabase(db: Database, world: World): void {
  checkpointLog(db, world, "TRUNCATE");
  db.close();
}

/** Checkpoints the log; true if complete. Frames needed by an older reader remain in the log. */
function checkpointLog(db: Database, world: World, mode: "PASSIVE" | "TRUNCATE"): boolean {
  try {
    const sql = mode === "PASSIVE" ? "wal_checkpoint(PASSIVE)" : "wal_checkpoint(TRUNCATE)";
    const [result] = db.pragma(sql) as readonly { readonly log: number; readonly checkpointed: number }[];
    return result !== undefined && result.checkpointed >= result.log;
  } catch (thrown) {
    world.log("warn", "the write-ahead log could not be checkpointed", { error: toStoreError(thrown).message });
    return false;
  }
}

/** Overwrites deleted data in place; copies in formerly free pages are removed by `vacuum`. */
function eraseSecurely<Value>(db: Database, operation: () => Value): Value {
  db.pragma("secure_delete = ON");
  try {
    return operation();
  } finally {
    db.pragma("secure_delete = OFF");
  }
}

/**
 * Number of commits after which the log is checkpointed, so that the file itself contains its owner and a copy
 * without the log is detected. A process with few writes avoids the checkpoint.
 */
const commitsUntilCheckpoint = 16;

/** Space for the tables of a new file, with a margin. */
const minFileBytes = 128 * 1024;

function checkOptions(path: string, options: SqliteStoreOptions): void {
  storeRules.checkKeys("sqliteStore", options, [
    "durability",
    "world",
    "maxBytes",
    "fileSystem",
    "encryption",
    "longTerm",
  ]);
  if (typeof path !== "string" || path.trim() === "" || path.includes("\0") || path.startsWith("file:"))
    throw createOptionError(
      `\`path\` must be a file path, got ${formatValue(path)}`,
      'Pass the path of a file, or ":memory:"',
    );
  const { durability = "full", maxBytes, fileSystem = "local", encryption } = options;
  longTermRules.checkVectors("sqliteStore", options.longTerm);
  if (encryption !== undefined && typeof encryption?.keys !== "function")
    throw createOptionError(
      "`encryption.keys` must be a function",
      "Pass encryption: { keys: (thread) => [{ id, key }] }",
    );
  if (encryption?.longTerm !== undefined && typeof encryption.longTerm !== "function")
    throw createOptionError("`encryption.longTerm` must be a function", "Pass longTerm: (namespace) => [{ id, key }]");
  if (durability !== "full" && durability !== "normal")
    throw createOptionError(
      `\`durability\` must be "full" or "normal", got ${formatValue(durability)}`,
      'Use "full" or "normal"',
    );
  if (fileSystem !== "local" && fileSystem !== "any")
    throw createOptionError(
      `\`fileSystem\` must be "local" or "any", got ${formatValue(fileSystem)}`,
      'Use "local" or "any"',
    );
  if (maxBytes !== undefined && !(Number.isInteger(maxBytes) && maxBytes >= minFileBytes))
    throw createOptionError(
      `\`maxBytes\` must be an integer ≥ ${minFileBytes}, got ${formatValue(maxBytes)}`,
      `Pass an integer of at least ${minFileBytes}`,
    );
}

/** Formats any value for a message, because callers without types can pass anything. */
function formatValue(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 200));
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

function createOptionError(what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `sqliteStore: ${what}`, next });
}
