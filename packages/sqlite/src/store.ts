/** The store in one SQLite file: reads at once, writes through the one writer. */

import {
  type BranchWrite,
  type Claim,
  type ClaimRequest,
  type Commit,
  checkId,
  type LetterWrite,
  type LongTermChange,
  type LongTermVectors,
  longTermRules,
  type QueueWrite,
  StatewrightError,
  type Store,
  storeRules,
  systemWorld,
  type World,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import { createVault, type Encryption } from "./encryption/cipher.ts";
import { createSweeper } from "./encryption/reencrypt.ts";
import { type Rotation, rotateAll, rotateItems, rotateThread } from "./encryption/rotation.ts";
import { backupTo } from "./file/back-up-database.ts";
import type { BackupOptions } from "./file/backup-options.ts";
import { createReserve } from "./file/disk-reserve.ts";
import type { Durability } from "./file/durability.ts";
import { settle } from "./file/fsync-database.ts";
import { withLastGood } from "./file/last-good.ts";
import { type OpenFile, openDatabase } from "./file/open-database.ts";
import { createOwner } from "./file/owner.ts";
import { insist } from "./file/retry-busy.ts";
import { asStoreError } from "./file/store-errors.ts";
import { vacuum } from "./file/vacuum.ts";
import { createReader, type Reader } from "./read/reader.ts";
import { createImages } from "./rows/thread-export.ts";
import type { VerifyReport } from "./verify/verify-report.ts";
import { createVerifier, verifyStore } from "./verify/verify-store.ts";
import { createArtifacts } from "./write/artifacts.ts";
import { createCommitter, locked } from "./write/committer.ts";
import { createLongTerm } from "./write/long-term.ts";
import { createCuts } from "./write/pruned-ranges.ts";
import { createWriter, type DeferredClaim, forgetLine, type Held, type Writer } from "./write/writer.ts";

/** A store in a SQLite file, and what its operator does with the file. */
export interface SqliteStore extends Store {
  /**
   * Write a copy of the file, as of one moment, while writers go on. Throws `store_exists` for a file that is there, unless
   * it may be overwritten, and `store_locked` while somebody has that file open.
   */
  backup(path: string, options?: BackupOptions): Promise<void>;
  /** Look at every row of a thread, or of all: each chain of checkpoints from its anchor on, each sum. */
  verify(thread?: string): Promise<VerifyReport>;
  /** Seal what is not sealed with the newest key again, of a thread or of all; gives how many rows were. */
  rotate(thread?: string): Promise<number>;
}

export interface SqliteStoreOptions {
  /** How a commit meets a power cut: `full` (the default) loses nothing that was told; `normal` may lose the last commits. */
  readonly durability?: Durability;
  /** The world that schedules commits and waits; the real one by default. */
  readonly world?: World;
  /** Refuse with `store_full` what would make the file larger than this, in bytes; no bound by default. */
  readonly maxBytes?: number;
  /** Where the file may lie: on a `local` disk (the default), or on `any` file system, also one of the network. */
  readonly fileSystem?: "local" | "any";
  /**
   * Keep what threads hold encrypted, under keys of 32 bytes: the first that `keys` gives for a thread writes, all read.
   * There is no search for words in what is encrypted.
   */
  readonly encryption?: Encryption;
  /** How vectors are made of what is put into the long-term store, so that it can be searched by nearness. */
  readonly longTerm?: LongTermVectors;
}

/**
 * A store that keeps threads in the SQLite file at `path`; `":memory:"` keeps them in this process, for tests. Throws
 * `invalid_option`, `store_corrupt` for a file that is not ours or was changed, `store_newer`, `store_locked`, `store_full`.
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): SqliteStore {
  checkOptions(path, options);
  const { durability = "full", world = systemWorld(), encryption, fileSystem } = options;
  const opened = openDatabase(path, {
    durability,
    withKeys: encryption !== undefined,
    anywhere: fileSystem === "any",
  });
  if (opened.lacksLog)
    world.log(
      "warn",
      "the file was copied without its log, or the log was removed: what was written last may be missing",
      { path },
    );
  try {
    return storeIn(opened, path, { ...options, durability, world });
  } catch (thrown) {
    opened.db.close();
    throw asStoreError(thrown, { path });
  }
}

function storeIn(
  { db, file }: OpenFile,
  path: string,
  options: SqliteStoreOptions & Required<Pick<SqliteStoreOptions, "durability" | "world">>,
): SqliteStore {
  const { durability, world, maxBytes, encryption } = options;
  const vault = encryption === undefined ? undefined : createVault(encryption);
  const owner = createOwner(db, file);
  const reader = createReader(db, vault, (fault) =>
    world.log("error", "a list leaves out a row that is not what was written", {
      ...fault.place,
      error: fault.message,
    }),
  );
  const artifacts = createArtifacts(db, (thread) => reader.seals(thread));
  const items = createLongTerm(db, vault);
  const longTerm = {
    apply: (changes: readonly LongTermChange[], at: number) => erasing(db, () => items.apply(changes, at)),
  };
  const writer = createWriter(db, { owner, reader, vault, artifacts, longTerm });
  const imageOf = createImages(db, { reader, cuts: createCuts(db), artifacts });
  const sweeper = createSweeper(db, { reader, artifacts });
  const verifier = createVerifier(db, { reader, cuts: createCuts(db), sweeper, artifacts, longTerm: items });
  const beginRead = db.prepare("BEGIN");
  const endRead = db.prepare("COMMIT");
  const giveUpRead = db.prepare("ROLLBACK");
  const reserve = createReserve(db, file, maxBytes);
  const committer = createCommitter(db, world, reserve.lend);
  const threads: Map<string, Held> = new Map();
  /** Threads that were let go while the file could not be written: their rows still name this store. */
  const unreleased: Set<Held> = new Set();
  /** Claims of runs that begin: each is written with the first commit of its run. */
  const deferred: Map<string, DeferredClaim> = new Map();
  let closed = false;
  let untilNamed = 0;

  function write<Value>(
    thread: string | undefined,
    run: () => Value,
    done: (value: Value) => void = () => undefined,
    undo: () => void = () => undefined,
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (closed) throw storeRules.closed("sqlite");
      let value: Value;
      let registered = false;
      committer.add({
        ...(thread === undefined ? {} : { thread }),
        run: () => {
          const before = owner.id();
          reader.forgetSeals();
          try {
            value = run();
          } finally {
            registered = owner.id() !== before;
          }
        },
        undo: () => {
          undo();
          if (!registered) return;
          reserve.close();
          owner.unregister();
        },
        told: (failure) => {
          if (failure !== undefined)
            return reject(thread === undefined ? failure : withLastGood(failure, reader, thread));
          if (registered) untilNamed = commitsUntilNamed;
          done(value);
          resolve(value);
        },
      });
    });
  }

  async function read<Value>(work: (reader: Reader) => Value, thread?: string): Promise<Value> {
    if (closed) throw storeRules.closed("sqlite");
    reader.forgetSeals();
    try {
      // One moment for all that is read: meanwhile others may delete and prune.
      beginRead.run();
      const value = work(reader);
      endRead.run();
      return value;
    } catch (thrown) {
      const error = asStoreError(thrown, thread === undefined ? {} : { thread });
      throw thread === undefined ? error : withLastGood(error, reader, thread);
    } finally {
      if (db.inTransaction) giveUpRead.run();
    }
  }

  /** One statement is one moment by itself. */
  function isInboxEmpty(thread: string): boolean {
    try {
      return !reader.hasLetters();
    } catch (thrown) {
      throw asStoreError(thrown, { thread });
    }
  }

  /** A read that says of runs whether they are at work: owners that it has not heard of yet are looked for first. */
  async function readStatus<Value>(
    work: (reader: Reader, dead: readonly number[]) => Value,
    thread?: string,
    owners: (reader: Reader) => readonly number[] = (from) => from.ownersAtWork(thread),
  ): Promise<Value> {
    const isKnown = (id: number): boolean => id === owner.id() || owner.isDead(id);
    const strangers = (await read(owners, thread)).filter((id) => !isKnown(id));
    // Who lives is told inside a write transaction only, in which nobody else looks.
    if (strangers.length > 0) await write(thread, () => strangers.map((id) => owner.isAlive(id)));
    return await read((from) => work(from, owner.dead()), thread);
  }

  function commit(commit: Commit, told: (failure?: StatewrightError, queued?: number) => void): void {
    if (closed) {
      world.schedule.soon(() => told(storeRules.closed("sqlite")));
      return;
    }
    const due = deferred.get(commit.thread);
    if (due?.claim.epoch === commit.epoch && letsGoOnly(commit)) {
      deferred.delete(commit.thread);
      world.schedule.soon(() => told(undefined, due.claim.queued));
      return;
    }
    let held: Held | undefined;
    let taken: DeferredClaim | undefined;
    let queued: number | undefined;
    committer.add({
      thread: commit.thread,
      last: commit.release === true && commit.checkpoint === undefined,
      run: () => {
        taken = undefined;
        if (deferred.get(commit.thread)?.claim.epoch === commit.epoch) {
          taken = takeDeferred(commit.thread);
          if (taken === undefined) throw storeRules.fenced(commit);
        }
        held = threads.get(commit.thread);
        queued = writer.commit(commit, held);
      },
      undo: () => {
        deferAgain(commit.thread, taken);
        if (held !== undefined)
          for (const line of [commit.branch, ...(commit.around ?? []).map(({ line }) => line)]) forgetLine(held, line);
      },
      told: (failure) => {
        forget(commit, failure);
        told(failure, queued);
        if (untilNamed > 0 && --untilNamed === 0 && !copyLog(db, world, "PASSIVE")) untilNamed = commitsUntilNamed;
      },
    });
  }

  /** Take the thread of a run that begins, with whatever is written to it first; nothing where others have come to it. */
  function takeDeferred(thread: string): DeferredClaim | undefined {
    const due = deferred.get(thread);
    reader.forgetSeals();
    const held = due?.take();
    if (held === undefined) return undefined;
    deferred.delete(thread);
    threads.set(thread, held);
    return due;
  }

  /** The write that has taken a thread is not in the file. */
  function deferAgain(thread: string, taken: DeferredClaim | undefined): void {
    if (taken === undefined) return;
    threads.delete(thread);
    deferred.set(thread, taken);
  }

  /** What is put beside a run takes the thread where the run is about to: a new one is there only then. */
  function putBeside<Value>(thread: string, run: () => Value): Promise<Value> {
    let taken: DeferredClaim | undefined;
    const put = (): Value => {
      taken = takeDeferred(thread);
      return run();
    };
    return write(thread, put, undefined, () => deferAgain(thread, taken));
  }

  /** The claim of a run that begins, where nobody holds the thread. */
  function defer(request: ClaimRequest): Claim | undefined {
    const self = owner.id();
    if (self === undefined || closed) return undefined;
    refuseDeferred(request.thread);
    const due = writer.defer(request);
    if (due === undefined) return undefined;
    reserve.take(self);
    deferred.set(request.thread, due);
    return due.claim;
  }

  /** A thread that a run of this store is about to begin on is held, though the file does not say so yet. */
  function refuseDeferred(thread: string): void {
    if (deferred.has(thread)) throw storeRules.busy(thread, owner.describe(owner.id() ?? 0));
  }

  /** What a commit that has ended means for who holds its thread. */
  function forget({ thread, epoch, release }: Commit, failure: StatewrightError | undefined): void {
    if (failure?.code === "fenced" && deferred.get(thread)?.claim.epoch === epoch) deferred.delete(thread);
    const held = threads.get(thread);
    if (held?.epoch !== epoch) return;
    if (failure === undefined ? release === true : failure.code === "fenced") threads.delete(thread);
    // Its row still names this store, which lives: the next claim or fork here must not take that for a run at work.
    else if (release === true) {
      held.letGo = true;
      unreleased.add(held);
    }
  }

  /** Let the file say of threads that they were let go, of which it could not: whoever looks for work finds what stands in them. */
  async function letGoAgain(): Promise<void> {
    const left = [...unreleased].filter((held) => threads.get(held.id) === held);
    unreleased.clear();
    if (left.length === 0) return;
    const forgetAll = (): void => {
      for (const held of left) if (threads.get(held.id) === held) threads.delete(held.id);
    };
    try {
      await write(undefined, () => left.forEach(writer.release), forgetAll);
    } catch (error) {
      for (const held of left) unreleased.add(held);
      world.log("debug", "threads could still not be let go", {
        count: left.length,
        error: asStoreError(error).message,
      });
    }
  }

  /** The epoch under which this store let a thread go without being able to write it. */
  function letGoAt(thread: string): number | undefined {
    const held = threads.get(thread);
    return held?.letGo === true ? held.epoch : undefined;
  }

  async function rotateWhole(change: Rotation): Promise<number> {
    const until = await read(() => verifier.youngest());
    const threadRows = await rotateAll(change, write, (after) => read(() => verifier.threads(after, until)));
    return threadRows + (await rotateItems(items, (work) => write(undefined, work)));
  }

  function isClosed(): boolean {
    return closed;
  }

  /** Let the threads go, where the file names an owner; whatever the disk says to that, everything is let go here. */
  function leave(): void {
    try {
      committer.close(() => (isAnyNamed() ? farewell(writer, threads, owner.leave) : undefined));
    } finally {
      reserve.close();
      owner.close();
      closeDatabase(db, world);
    }
  }

  /** Where the file does not say, there may be one. */
  function isAnyNamed(): boolean {
    try {
      return owner.isAnyNamed();
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
      const due = request.begins === true ? await read(() => defer(request), request.thread) : undefined;
      if (due !== undefined) return due;
      const { claim } = await write(
        request.thread,
        () => {
          refuseDeferred(request.thread);
          const claimed = writer.claim(request, letGoAt(request.thread));
          // A run that begins has the room to say that it stands still.
          reserve.take(owner.id() ?? 0);
          return claimed;
        },
        ({ held }) => threads.set(held.id, held),
      );
      return claim;
    },
    commit,
    branch: async (fork: BranchWrite) => {
      checkId("thread", fork.thread);
      checkId("branch", fork.branch);
      return await write(fork.thread, () => {
        refuseDeferred(fork.thread);
        return writer.branch(fork, letGoAt(fork.thread));
      });
    },
    enqueue: async (put: QueueWrite) => {
      checkId("thread", put.thread);
      return await putBeside(put.thread, () => writer.enqueue(put));
    },
    dequeue: (thread, run, ended) => write(thread, () => writer.dequeue(thread, run, ended)),
    post: async (letter: LetterWrite) => {
      checkId("thread", letter.thread);
      return await putBeside(letter.thread, () => writer.post(letter));
    },
    thread: (id) => readStatus((from, dead) => from.thread(id, dead), id),
    threads: async (filter = {}) => {
      const wanted = storeRules.checkThreadFilter(filter);
      return await readStatus((from, dead) => from.threads(filter, wanted, dead));
    },
    branches: (thread) => read((from) => from.branches(thread), thread),
    runs: async (filter = {}) => {
      const wanted = storeRules.checkRunFilter(filter);
      return await readStatus((from, dead) => from.runs(filter, wanted, dead), filter.thread);
    },
    claimable: async (page) => {
      storeRules.checkClaimablePage(page);
      if (unreleased.size > 0) await letGoAgain();
      const owners = page.kind === "queued" ? (from: Reader) => from.ownersWithQueue() : undefined;
      return await readStatus((from, dead) => from.claimable(page, dead), undefined, owners);
    },
    checkpoint: (thread, id) => read((from) => from.checkpoint(thread, id), thread),
    writtenBy: (thread, checkpoint) => read((from) => from.writtenBy(thread, checkpoint), thread),
    head: (thread, branch) => read((from) => from.head(thread, branch), thread),
    history: (thread, page) =>
      read((from) => {
        storeRules.checkFilter("history", page, ["branch", "before"]);
        return from.history(thread, page);
      }, thread),
    state: (thread, checkpoint) => read((from) => from.state(thread, checkpoint), thread),
    effects: (thread, branch, step) => read((from) => from.effects(thread, branch, step), thread),
    interrupts: (thread, branch) => read((from) => from.interrupts(thread, branch), thread),
    events: (thread, page) =>
      read((from) => {
        storeRules.checkFilter("events", page, ["after", "from"]);
        return from.events(thread, page);
      }),
    questions: (filter = {}) =>
      read((from) => {
        storeRules.checkFilter("questions", filter, storeRules.questionFilterKeys);
        return from.questions(filter);
      }),
    inbox: async (thread, branch) => {
      if (closed) throw storeRules.closed("sqlite");
      return isInboxEmpty(thread) ? [] : await read((from) => from.inbox(thread, branch), thread);
    },
    timers: (filter = {}) =>
      read((from) => {
        storeRules.checkFilter("timers", filter, ["thread", "dueBy"]);
        return from.timers(filter);
      }),
    longTerm: {
      ...(options.longTerm === undefined ? {} : { vectors: options.longTerm }),
      get: (place, at) => read(() => items.get(place, at)),
      page: (query) => read(() => items.page(query)),
      write: (changes, at) => write(undefined, () => longTerm.apply(changes, at)),
      refresh: (touches) => write(undefined, () => items.refresh(touches)),
      sweep: (at, limit) => write(undefined, () => erasing(db, () => items.sweep(at, limit))),
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
      delete: (thread, key) => write(thread, () => erasing(db, () => artifacts.remove(thread, key))),
    },
    delete: async (id) => {
      await write(
        id,
        () => {
          refuseDeferred(id);
          erasing(db, () => writer.remove(id, letGoAt(id)));
        },
        () => threads.delete(id),
      );
    },
    image: (id) => read(() => imageOf(id), id),
    insert: async (image) => {
      await write(image.id, () => {
        if (deferred.has(image.id)) throw storeRules.threadExists(image.id);
        writer.insert(image);
      });
    },
    prune: async (prune) => {
      const pieces = writer.prune(prune);
      for (let piece = pieces.next(); ; piece = pieces.next()) {
        if (piece.done === true) return piece.value;
        const { does, run } = piece.value;
        if (does === "writes") await write(prune.thread, () => erasing(db, run));
        else if (does === "reads") await read(run, prune.thread);
        // Others come in between: a write has waited for its turn already.
        if (does !== "writes") await new Promise<void>((resolve) => void world.schedule.soon(resolve));
      }
    },
    vacuum: () => vacuum(db, world, isClosed),
    backup: async (target, backup = {}) => {
      if (closed) throw storeRules.closed("sqlite");
      storeRules.checkKeys("backup", backup, ["overwrite"]);
      await backupTo(db, target, backup);
    },
    verify: (thread) => verifyStore(verifier, (work) => read(work, thread), thread),
    rotate: async (thread) => {
      if (vault === undefined)
        throw invalid("a store without encryption has no keys to rotate", "Open it with encryption: { keys }");
      const change = { reader, vault, sweeper };
      const rows = thread === undefined ? await rotateWhole(change) : await rotateThread(change, write, thread);
      // An older key may be thrown away now: a power cut must not bring back what was sealed with it.
      if (durability !== "full" && !(await insist(world, isClosed, () => settle(db)))) throw locked();
      return rows;
    },
    close: () => {
      if (closed) return;
      closed = true;
      leave();
    },
  };
}

/** Whether a commit does nothing but let its thread go. */
function letsGoOnly({
  thread: _,
  branch: __,
  epoch: ___,
  seq: ____,
  after: _____,
  release,
  ...parts
}: Commit): boolean {
  const isNothing = (part: unknown): boolean => part === undefined || (Array.isArray(part) && part.length === 0);
  return release === true && Object.values(parts).every(isNothing);
}

/** The last write: every thread is let go, so that the next owner knows that this one did not die. */
function farewell(writer: Writer, threads: ReadonlyMap<string, Held>, leave: () => void) {
  return {
    run: () => {
      for (const held of threads.values()) writer.release(held);
      leave();
    },
    undo: () => undefined,
    told: () => undefined,
  };
}

/** The log is copied into the file when that is possible; where it is not, nothing is lost: the next to open the file reads the log. */
function closeDatabase(db: Database, world: World): void {
  copyLog(db, world, "TRUNCATE");
  db.close();
}

/** Whether all of it was: what somebody who reads an older state still needs stays in the log. */
function copyLog(db: Database, world: World, how: "PASSIVE" | "TRUNCATE"): boolean {
  try {
    const sql = how === "PASSIVE" ? "wal_checkpoint(PASSIVE)" : "wal_checkpoint(TRUNCATE)";
    const [copied] = db.pragma(sql) as readonly { readonly log: number; readonly checkpointed: number }[];
    return copied !== undefined && copied.checkpointed >= copied.log;
  } catch (thrown) {
    world.log("warn", "the log could not be copied into the file", { error: asStoreError(thrown).message });
    return false;
  }
}

/** What was removed is overwritten at once where it stands; copies in pages that were free before go with `vacuum`. */
function erasing<Value>(db: Database, work: () => Value): Value {
  db.pragma("secure_delete = ON");
  try {
    return work();
  } finally {
    db.pragma("secure_delete = OFF");
  }
}

/**
 * The file itself must name its owner, not only its log, so that a copy without the log is known for what it is. After so
 * many commits the log is copied into the file for that: a process that does little is spared the wait.
 */
const commitsUntilNamed = 16;

/** Room for the tables of a fresh file, and a little more. */
const smallestBytes = 128 * 1024;

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
    throw invalid(`the path is ${shown(path)}`, 'Give the path of a file, or ":memory:"');
  const { durability = "full", maxBytes, fileSystem = "local", encryption } = options;
  longTermRules.checkVectors("sqliteStore", options.longTerm);
  if (encryption !== undefined && typeof encryption?.keys !== "function")
    throw invalid("encryption has no function keys", "Give encryption: { keys: (thread) => [{ id, key }] }");
  if (encryption?.longTerm !== undefined && typeof encryption.longTerm !== "function")
    throw invalid("longTerm of encryption is no function", "Give longTerm: (namespace) => [{ id, key }]");
  if (durability !== "full" && durability !== "normal")
    throw invalid(`durability is ${shown(durability)}`, 'Use "full" or "normal"');
  if (fileSystem !== "local" && fileSystem !== "any")
    throw invalid(`fileSystem is ${shown(fileSystem)}`, 'Use "local" or "any"');
  if (maxBytes !== undefined && !(Number.isInteger(maxBytes) && maxBytes >= smallestBytes))
    throw invalid(`maxBytes is ${shown(maxBytes)}`, `Give a whole number from ${smallestBytes}`);
}

/** A value in a few words: a program without types may give anything. */
function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 200));
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

function invalid(what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `sqliteStore: ${what}`, next });
}
