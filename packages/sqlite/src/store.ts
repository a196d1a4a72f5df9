/** The store in one SQLite file: reads at once, writes through the one writer. */

import {
  type BranchWrite,
  type ClaimRequest,
  type Commit,
  checkId,
  StatewrightError,
  type Store,
  storeRules,
  systemWorld,
  type World,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import { createCommitter } from "./committer.ts";
import { openDatabase } from "./database.ts";
import type { Durability } from "./durability.ts";
import { asStoreError } from "./errors.ts";
import { createOwner } from "./owner.ts";
import { createReader, type Reader } from "./reader.ts";
import { createWriter, forgetLine, type Held, type Writer } from "./writer.ts";

export interface SqliteStoreOptions {
  /** How a commit meets a power cut: `full` (the default) loses nothing that was told; `normal` may lose the last commits. */
  readonly durability?: Durability;
  /** The world that schedules commits and waits; the real one by default. */
  readonly world?: World;
  /** Refuse with `store_full` what would make the file larger than this, in bytes; no bound by default. */
  readonly maxBytes?: number;
}

/**
 * A store that keeps threads in the SQLite file at `path`; `":memory:"` keeps them in this process, for tests. Throws
 * `invalid_option`, `store_corrupt` for a file that is not ours or was changed, `store_newer`, `store_locked`, `store_full`.
 */
export function sqliteStore(path: string, options: SqliteStoreOptions = {}): Store {
  checkOptions(path, options);
  const { durability = "full", world = systemWorld(), maxBytes } = options;
  const { db, file } = openDatabase(path, durability, maxBytes);
  const owner = createOwner(db, file);
  const reader = createReader(db);
  const writer = createWriter(db, owner, reader);
  const committer = createCommitter(db, world);
  const threads: Map<string, Held> = new Map();
  let closed = false;

  function write<Value>(
    thread: string,
    run: () => Value,
    done: (value: Value) => void = () => undefined,
  ): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (closed) throw storeRules.closed("sqlite");
      let value: Value;
      let registered = false;
      committer.add({
        thread,
        run: () => {
          const before = owner.id();
          try {
            value = run();
          } finally {
            registered = owner.id() !== before;
          }
        },
        undo: () => {
          if (registered) owner.unregister();
        },
        told: (failure) => {
          if (failure !== undefined) return reject(failure);
          done(value);
          resolve(value);
        },
      });
    });
  }

  async function read<Value>(work: (reader: Reader) => Value, thread?: string): Promise<Value> {
    if (closed) throw storeRules.closed("sqlite");
    try {
      return work(reader);
    } catch (thrown) {
      throw asStoreError(thrown, thread === undefined ? {} : { thread });
    }
  }

  function commit(commit: Commit, told: (failure?: StatewrightError) => void): void {
    if (closed) {
      world.schedule.soon(() => told(storeRules.closed("sqlite")));
      return;
    }
    let held: Held | undefined;
    committer.add({
      thread: commit.thread,
      run: () => {
        held = threads.get(commit.thread);
        writer.commit(commit, held);
      },
      undo: () => {
        if (held !== undefined) forgetLine(held, commit.branch);
      },
      told: (failure) => {
        forget(commit, failure);
        told(failure);
      },
    });
  }

  /** What a commit that has ended means for who holds its thread. */
  function forget({ thread, epoch, release }: Commit, failure: StatewrightError | undefined): void {
    const held = threads.get(thread);
    if (held?.epoch !== epoch) return;
    if (failure === undefined ? release === true : failure.code === "fenced") threads.delete(thread);
    // Its row still names this store, which lives: the next claim or fork here must not take that for a run at work.
    else if (release === true) held.letGo = true;
  }

  /** The epoch under which this store let a thread go without being able to write it. */
  function letGoAt(thread: string): number | undefined {
    const held = threads.get(thread);
    return held?.letGo === true ? held.epoch : undefined;
  }

  return {
    name: "sqlite",
    claim: async (request: ClaimRequest) => {
      checkId("thread", request.thread);
      if (request.branch !== undefined) checkId("branch", request.branch);
      const { claim } = await write(
        request.thread,
        () => writer.claim(request, letGoAt(request.thread)),
        ({ held }) => threads.set(held.id, held),
      );
      return claim;
    },
    commit,
    branch: async (fork: BranchWrite) => {
      checkId("thread", fork.thread);
      checkId("branch", fork.branch);
      return await write(fork.thread, () => writer.branch(fork, letGoAt(fork.thread)));
    },
    thread: (id) => read((from) => from.thread(id), id),
    threads: (filter = {}) =>
      read((from) => {
        storeRules.checkFilter("threads", filter, ["graph", "status"]);
        return from.threads(filter);
      }),
    branches: (thread) => read((from) => from.branches(thread), thread),
    runs: (filter = {}) =>
      read((from) => {
        storeRules.checkFilter("runs", filter, ["thread", "status"]);
        return from.runs(filter);
      }),
    checkpoint: (thread, id) => read((from) => from.checkpoint(thread, id), thread),
    head: (thread, branch) => read((from) => from.head(thread, branch), thread),
    history: (thread, page) =>
      read((from) => {
        storeRules.checkFilter("history", page, ["branch", "before"]);
        return from.history(thread, page);
      }, thread),
    state: (thread, checkpoint) => read((from) => from.state(thread, checkpoint), thread),
    effects: (thread, branch, step) => read((from) => from.effects(thread, branch, step), thread),
    interrupts: (thread, branch) => read((from) => from.interrupts(thread, branch), thread),
    timers: (filter = {}) =>
      read((from) => {
        storeRules.checkFilter("timers", filter, ["thread", "dueBy"]);
        return from.timers(filter);
      }),
    close: () => {
      if (closed) return;
      closed = true;
      committer.close(() => (owner.id() === undefined ? undefined : farewell(writer, threads, owner.leave)));
      owner.close();
      closeDatabase(db, world);
    },
  };
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
  try {
    db.pragma("wal_checkpoint(TRUNCATE)");
  } catch (thrown) {
    world.log("warn", "the log could not be copied into the file", { error: asStoreError(thrown).message });
  } finally {
    db.close();
  }
}

/** Room for the tables of a fresh file, and a little more. */
const smallestBytes = 128 * 1024;

function checkOptions(path: string, options: SqliteStoreOptions): void {
  storeRules.checkKeys("sqliteStore", options, ["durability", "world", "maxBytes"]);
  if (typeof path !== "string" || path.trim() === "" || path.includes("\0") || path.startsWith("file:"))
    throw invalid(`the path is ${JSON.stringify(path)}`, 'Give the path of a file, or ":memory:"');
  const { durability = "full", maxBytes } = options;
  if (durability !== "full" && durability !== "normal")
    throw invalid(`durability is ${JSON.stringify(durability)}`, 'Use "full" or "normal"');
  if (maxBytes !== undefined && !(Number.isInteger(maxBytes) && maxBytes >= smallestBytes))
    throw invalid(`maxBytes is ${maxBytes}`, `Give a whole number from ${smallestBytes}`);
}

function invalid(what: string, next: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `sqliteStore: ${what}`, next });
}
