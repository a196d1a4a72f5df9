/** Rows of threads: creation, ownership, head and queue length. */

import { type ClaimMode, type PreviousOwner, storeRules, type ThreadDetails } from "@statewright/core/store";
import type { StoreCipher, StoredStatus } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { Owner } from "../file/owner.ts";
import { threadHeadAssignments } from "../read/thread-head.ts";
import type { ClaimedThread, ThreadHead } from "../write/claimed-thread.ts";

export interface ThreadState extends ThreadHead {
  readonly key: number;
  readonly head: string;
  /** Random part of the idempotency keys. */
  readonly salt: string;
  readonly owner: number | null;
  readonly epoch: number;
  /** Number of queued runs, waiting inbox messages and open requests. */
  readonly queued: number;
  readonly messages: number;
  readonly requests: number;
  /** Number of the last input: every input of the file has a higher number than the one before. */
  readonly input: number;
  readonly tenant: string | null;
  /** Key of the graph version; null before the first claim. */
  readonly graph: number | null;
  /** Ids of owners that lost the thread to a forced claim, as a JSON list; null without one that may be alive. */
  readonly displaced: string | null;
}

/** New thread; `graph` is the key of its graph version, null before the first claim. */
interface NewThread {
  readonly id: string;
  readonly salt: string;
  readonly head: string;
  readonly graph: number | null;
  readonly at: number;
  readonly details: ThreadDetails;
}

/** First run of a new thread, and the head after its first commit. */
interface FirstRun {
  /** Row key of the run. */
  readonly run: number;
  readonly status: StoredStatus;
  /** Owner after the commit; null for a commit that releases the thread. */
  readonly owner: number | null;
  readonly head: ThreadHead;
}

/** Status of a thread without a run. */
export const statusWithoutRun = "new";

/** Row key of a new thread: rows of a deleted thread may remain under its key. */
const newThreadKey =
  "max(coalesce((SELECT max(key) FROM threads), 0), coalesce((SELECT max(key) FROM removed_threads), 0)) + 1";

function prepareStatements(db: Database) {
  return {
    threadState: db.prepare<[string], ThreadState>(
      "SELECT key, head, salt, owner, epoch, seq, checkpoint, updated, queued, messages, requests, input, tenant, graph, displaced FROM threads WHERE id = ?",
    ),
    addThread: db.prepare(
      "INSERT INTO threads (key, id, salt, graph, head, status, epoch, seq, checkpoint, queued, messages, requests, input, created, updated, secret, tenant, user)" +
        " VALUES (" +
        newThreadKey +
        ", ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, ?, ?, ?, ?, ?)",
    ),
    addClaimedThread: db.prepare(
      "INSERT INTO threads (key, id, salt, graph, head, run, status, owner, epoch, seq, checkpoint, queued, messages, requests, input, created, updated, secret, tenant, user)" +
        " VALUES (" +
        newThreadKey +
        ", ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, 0, 0, 0, 0, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
    ),
    advance: db.prepare<[number, number, number, number]>(
      "UPDATE threads SET seq = ?, checkpoint = ?, updated = max(updated, ?) WHERE key = ?",
    ),
    releaseRow: db.prepare<[number, number, number]>(
      "UPDATE threads AS t SET owner = NULL, " +
        threadHeadAssignments +
        " WHERE t.key = ? AND t.epoch = ? AND t.owner = ?",
    ),
    updateThreadHead: db.prepare<[string]>("UPDATE threads AS t SET " + threadHeadAssignments + " WHERE t.id = ?"),
    countOwn: prepareCounts(db, ""),
    addInput: prepareCounts(
      db,
      ", input = (SELECT coalesce(max(input), 0) + 1 FROM threads INDEXED BY threads_by_input WHERE input > 0)",
    ),
    touch: db.prepare<[number, number]>("UPDATE threads SET updated = max(updated, ?) WHERE key = ?"),
    setDisplaced: db.prepare<[string | null, number]>("UPDATE threads SET displaced = ? WHERE key = ?"),
    moveHead: db.prepare<[string, number]>("UPDATE threads SET head = ? WHERE key = ?"),
  };
}

/** Kind of an input that waits for the owner of a thread. */
type InputKind = "queued" | "messages" | "requests";

function prepareCounts(db: Database, assignment: string) {
  const prepareCount = (kind: InputKind) =>
    db.prepare<[number, number]>("UPDATE threads SET " + kind + " = " + kind + " + ?" + assignment + " WHERE key = ?");
  return {
    queued: prepareCount("queued"),
    messages: prepareCount("messages"),
    requests: prepareCount("requests"),
  };
}

/** Writes the rows of threads; call inside a transaction. */
export class ThreadRows {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #owner: Owner;
  readonly #storeCipher: StoreCipher | undefined;

  constructor(
    db: Database,
    { owner, storeCipher }: { readonly owner: Owner; readonly storeCipher: StoreCipher | undefined },
  ) {
    this.#sql = prepareStatements(db);
    this.#owner = owner;
    this.#storeCipher = storeCipher;
  }

  /** Finds a thread. */
  find(id: string): ThreadState | undefined {
    return this.#sql.threadState.get(id);
  }

  /** Returns a thread. Throws `unknown_thread`. */
  get(id: string): ThreadState {
    const state = this.#sql.threadState.get(id);
    if (state === undefined) throw storeRules.createUnknownThreadError(id);
    return state;
  }

  /** Advances the numbers of a thread and its time of last change. */
  advance(key: number, { seq, checkpoint, updated }: ThreadHead): void {
    this.#sql.advance.run(seq, checkpoint, updated, key);
  }

  /** Makes a branch the head branch. */
  moveHead(key: number, branch: string): void {
    this.#sql.moveHead.run(branch, key);
  }

  /** Changes a number of waiting inputs for the owner of the thread, or for a thread without one. */
  countOwn(key: number, kind: InputKind, change: number): void {
    this.#sql.countOwn[kind].run(change, key);
  }

  /** Changes a number of waiting inputs for any process: the owner of the thread finds the new number. */
  addInput(key: number, kind: InputKind, change: number): void {
    this.#sql.addInput[kind].run(change, key);
  }

  /** Releases a thread if this store still owns it. */
  release(claimed: Pick<ClaimedThread, "key" | "epoch">): void {
    const self = this.#owner.getId();
    if (self !== undefined) this.#sql.releaseRow.run(claimed.key, claimed.epoch, self);
  }

  /**
   * Creates a thread with its first run and the head that the commit of this run gives it; undefined if the thread
   * exists. The caller writes its title and metadata.
   */
  createClaimed(
    { id, salt, head, graph, at, details }: NewThread,
    { run, status, owner, head: { seq, checkpoint, updated } }: FirstRun,
  ): ThreadState | undefined {
    const { tenant = null, owner: user = null } = details;
    const secret = this.#storeCipher?.createSecret(id) ?? null;
    const row = [id, salt, graph, head, run, status, owner, seq, checkpoint, at, updated, secret, tenant, user];
    const { changes, lastInsertRowid } = this.#sql.addClaimedThread.run(...row);
    if (changes === 0) return undefined;
    return { ...createState({ salt, head, graph, at, tenant }), key: Number(lastInsertRowid) };
  }

  /** Creates a thread without an owner process; the caller writes its title and metadata. */
  create({ id, salt, head, graph, at, details }: NewThread): ThreadState {
    const secret = this.#storeCipher?.createSecret(id) ?? null;
    const { tenant = null, owner: user = null } = details;
    const row = [id, salt, graph, head, statusWithoutRun, at, at, secret, tenant, user];
    const key = Number(this.#sql.addThread.run(...row).lastInsertRowid);
    return { ...createState({ salt, head, graph, at, tenant }), key };
  }

  /** Moves the time of the last change of a thread forward. */
  touch(key: number, at: number): void {
    this.#sql.touch.run(at, key);
  }

  /** Updates the row of a thread without a live owner to its head. */
  updateStoredHead(thread: string, state: ThreadState): ThreadState {
    if (state.owner === null) return state;
    this.#sql.updateThreadHead.run(thread);
    return this.#sql.threadState.get(thread) ?? state;
  }

  /** Throws `thread_busy` for a thread with a live owner; returns true for a dead owner. */
  refuseLiveOwner(thread: string, state: ThreadState, releasedEpoch: number | undefined): boolean {
    if (state.owner === null || state.epoch === releasedEpoch) return false;
    if (this.#owner.isAlive(state.owner)) throw storeRules.createBusyError(thread, this.#owner.describe(state.owner));
    return true;
  }

  /**
   * Prepares the change of the owner of a thread; returns the kind of its previous owner. Throws `thread_busy` for a
   * live owner, unless the claim is forced and the owner is another store.
   */
  replaceOwner(
    thread: string,
    state: ThreadState,
    { releasedEpoch, claim }: { readonly releasedEpoch: number | undefined; readonly claim: ClaimMode | undefined },
  ): PreviousOwner {
    const displaces = claim === "force" && state.owner !== null && state.owner !== this.#owner.getId();
    const isDead = displaces ? undefined : this.refuseLiveOwner(thread, state, releasedEpoch);
    if (displaces || state.displaced !== null) {
      const known = state.displaced === null ? [] : (JSON.parse(state.displaced) as readonly number[]);
      const living = [...known, ...(displaces ? [state.owner as number] : [])].filter((id) => this.#owner.isAlive(id));
      this.#sql.setDisplaced.run(living.length === 0 ? null : JSON.stringify(living), state.key);
      if (living.length > 0) return "displaced";
    }
    return isDead === false ? "released" : "dead";
  }
}

/** Creates the state of a new thread without an owner. */
function createState({
  salt,
  head,
  graph,
  at,
  tenant,
}: Pick<ThreadState, "salt" | "head" | "graph" | "tenant"> & { readonly at: number }): Omit<ThreadState, "key"> {
  const counts = { queued: 0, messages: 0, requests: 0, input: 0 };
  const isUnclaimed = { owner: null, epoch: 0, displaced: null };
  return { head, salt, ...isUnclaimed, seq: 0, checkpoint: 0, updated: at, ...counts, tenant, graph };
}
