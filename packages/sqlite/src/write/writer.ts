/** Writes of the store: claims, commits and forks, each inside a transaction of the committer. */

import { StatewrightError } from "@statewright/core";
import { checkId } from "@statewright/core/adapter";
import {
  type BranchWrite,
  type CheckpointRow,
  type CheckpointWrite,
  type Claim,
  type ClaimRequest,
  type Commit,
  type EffectRow,
  type EventRow,
  type InboxMessage,
  type InboxMessageWrite,
  type InterruptRow,
  type NamespaceJournal,
  type PruneWrite,
  type QueueWrite,
  type RunRow,
  storeRules,
  type ThreadExport,
  type TimerChange,
} from "@statewright/core/store";
import type { Database } from "better-sqlite3";
import type { Payload, StoreCipher, ThreadCipher } from "../encryption/cipher.ts";
import {
  toControlContext,
  toDeltaColumns,
  toEventColumns,
  toInterruptPayload,
  toRunPayload,
} from "../encryption/encrypted-rows.ts";
import type { Owner } from "../file/owner.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import { createCorruptError } from "../file/store-errors.ts";
import type { NamespaceRow } from "../read/namespace-reader.ts";
import type { Reader } from "../read/reader.ts";
import { threadHeadAssignments, threadHeadCheckpoint, threadHeadSeq, threadHeadTime } from "../read/thread-head.ts";
import { createEffectRows } from "../rows/effect-rows.ts";
import { type FoldedColumns, isFoldable, nothingFolded, toFoldedColumns } from "../rows/folded-effects.ts";
import { changedRunSum, computeColumnSum, foldedEffectSum, putRunSum } from "../rows/row-sums.ts";
import {
  type CheckpointColumns,
  computeTimerSum,
  type GraphVersion,
  hashCheckpoint,
  toCheckpointRow,
} from "../rows/rows.ts";
import { toStoredStatus } from "../rows/run-status.ts";
import { createEraser } from "../rows/thread-tables.ts";
import { checkWellFormed } from "../rows/well-formed.ts";
import type { Artifacts } from "./artifacts.ts";
import { InboxMessages } from "./inbox-messages.ts";
import type { LongTermTable } from "./long-term.ts";
import { hashRemainingDeltas, PrunedRanges } from "./pruned-ranges.ts";
import { Retention } from "./retention.ts";
import type { PruneStep } from "./retention-plan-rows.ts";

/** Thread owned by this store, with cached state of the file. */
export interface ClaimedThread {
  readonly id: string;
  readonly key: number;
  readonly epoch: number;
  readonly writer: GraphVersion & { readonly key: number };
  /** State of the written namespaces, by name; a missing entry is read again. */
  readonly namespaces: Map<string, NamespaceState>;
  /** Head of the thread over all namespaces; undefined when it must be read again. */
  head: ThreadHead | undefined;
  /** True when the row of the thread contains the graph of this writer. */
  hasGraph: boolean;
  /** Last written run. */
  run: RunKey | undefined;
  /** Last known number of queued runs of the thread. */
  queued: number;
  /** True after a release that could not be written. */
  isReleased: boolean;
  /** True when the run may have taken inbox messages. */
  mayHaveTakenMessages: boolean;
  /** True when interrupts may be awaiting an answer. */
  mayAwaitAnswers: boolean;
  /** Cipher of the values of the thread. */
  cipher: ThreadCipher | undefined;
}

/** Last event number, last checkpoint id and last change of a thread. */
interface ThreadHead {
  readonly seq: number;
  readonly checkpoint: number;
  readonly updated: number;
}

interface RunKey {
  readonly id: string;
  readonly key: number;
}

interface NamespaceState {
  readonly name: string;
  readonly key: number;
  /** Parent of the next checkpoint in the namespace. */
  readonly head: { readonly id: number; readonly hash: string } | undefined;
  /** Step whose journal the next checkpoint folds; undefined before the first checkpoint of the namespace. */
  readonly step: number | undefined;
  /** Last step of the namespace with journal rows in the file; -1 for none. */
  readonly journal: number;
  /** Cache of the channel keys of the namespace. */
  readonly channels: Map<string, number>;
}

/** Maximum number of cached namespaces per thread; the oldest entries are evicted. */
const maxCachedNamespaces = 4_096;

/** Discards the cached state of a namespace after a rollback. */
export function forgetNamespace(thread: ClaimedThread, namespace: string): void {
  thread.namespaces.delete(namespace);
  thread.head = undefined;
  thread.hasGraph = false;
  thread.run = undefined;
  thread.mayAwaitAnswers = true;
}

/** Claim of an unowned thread, deferred to the first write. */
export interface DeferredClaim {
  /** Future claim. */
  readonly claim: Claim;
  /** Claims the thread, inside the transaction of its first write; undefined if the thread has changed. */
  claimThread(): ClaimedThread | undefined;
}

export interface Writer {
  /**
   * Prepares a claim without a write, inside a read transaction; undefined if the thread must be claimed immediately.
   */
  defer(request: ClaimRequest): DeferredClaim | undefined;
  /** Claims a thread without a live owner; a thread with the epoch `releasedEpoch` counts as released. */
  claim(
    request: ClaimRequest,
    releasedEpoch: number | undefined,
  ): { readonly claim: Claim; readonly claimed: ClaimedThread };
  /** Writes a commit; returns the number of queued runs of the thread. */
  commit(commit: Commit, claimed: ClaimedThread | undefined): number;
  enqueue(write: QueueWrite): RunRow;
  dequeue(thread: string, run: string, ended: { readonly at: number; readonly reason: string }): boolean;
  post(write: InboxMessageWrite): InboxMessage;
  createBranch(write: BranchWrite, releasedEpoch: number | undefined): CheckpointRow;
  /** Deletes a thread without a live owner. */
  remove(thread: string, releasedEpoch: number | undefined): void;
  insert(threadExport: ThreadExport): void;
  /** Prunes old checkpoints step by step; returns the number of removed checkpoints. */
  prune(write: PruneWrite): Generator<PruneStep, number>;
  /** Releases a thread, inside the last transaction. */
  release(claimed: ClaimedThread): void;
}

interface ThreadState extends ThreadHead {
  readonly key: number;
  readonly head: string;
  readonly owner: number | null;
  readonly epoch: number;
  readonly queued: number;
}

/** Stored state of a branch at the time of a claim. */
interface StoredBranch {
  readonly branch: string;
  readonly namespaceKey: number;
  readonly namespace: NamespaceRow | undefined;
  readonly head: CheckpointColumns | undefined;
  readonly run: RunRow | undefined;
  readonly recovered: boolean;
}

export function createWriter(
  db: Database,
  {
    owner,
    reader,
    storeCipher,
    artifacts,
    longTerm,
  }: {
    readonly owner: Owner;
    readonly reader: Reader;
    readonly storeCipher: StoreCipher | undefined;
    readonly artifacts: Artifacts;
    readonly longTerm: Pick<LongTermTable, "apply">;
  },
): Writer {
  const inboxMessages = new InboxMessages(db);
  const prunedRanges = new PrunedRanges(db);
  const eraser = createEraser(db);
  const effectRows = createEffectRows(db);
  const retention = new Retention(db, { reader, prunedRanges, eraser, effects: effectRows });
  const threadState = db.prepare<[string], ThreadState>(
    "SELECT key, head, owner, epoch, seq, checkpoint, updated, queued FROM threads WHERE id = ?",
  );
  const addThread = db.prepare<[string, number, string, number, number, Uint8Array | null]>(
    "INSERT INTO threads (id, graph, head, epoch, seq, checkpoint, queued, created, updated, secret) VALUES (?, ?, ?, 0, 0, 0, 0, ?, ?, ?)",
  );
  const addNamespace = db.prepare<[number, string, number | null, number | null]>(
    "INSERT INTO branches (thread, name, parent, origin) VALUES (?, ?, ?, ?)",
  );
  const claimRow = db
    .prepare<[number, number], number>("UPDATE threads SET owner = ?, epoch = epoch + 1 WHERE key = ? RETURNING epoch")
    .pluck();
  const claimUnchangedRow = db.prepare<[number, number, string, number, number, number, number]>(
    "UPDATE threads SET owner = ?, epoch = epoch + 1" +
      " WHERE key = ? AND id = ? AND epoch = ? AND owner IS NULL AND seq = ? AND checkpoint = ? AND updated = ?",
  );
  const advance = db.prepare<[number, number, number, number]>(
    "UPDATE threads SET seq = ?, checkpoint = ?, updated = max(updated, ?) WHERE key = ?",
  );
  const releaseRow = db.prepare<[number, number, number]>(
    "UPDATE threads AS t SET owner = NULL, " +
      threadHeadAssignments +
      " WHERE t.key = ? AND t.epoch = ? AND t.owner = ?",
  );
  const updateThreadHead = db.prepare<[string]>("UPDATE threads AS t SET " + threadHeadAssignments + " WHERE t.id = ?");
  const fence = db.prepare<[number, number, number, number | null, number | null, number, number, number, number]>(
    "UPDATE threads SET seq = ?, checkpoint = ?, updated = ?, graph = coalesce(?, graph), owner = ?" +
      " WHERE key = ? AND epoch = ? AND owner = ? AND queued = ?",
  );
  const queuedOfThread = db
    .prepare<[number, number, number], number>("SELECT queued FROM threads WHERE key = ? AND epoch = ? AND owner = ?")
    .pluck();
  const headOfThread = db.prepare<[number], ThreadHead>(
    "SELECT " +
      threadHeadSeq +
      " AS seq, " +
      threadHeadCheckpoint +
      " AS checkpoint, " +
      threadHeadTime +
      " AS updated FROM threads t WHERE t.key = ?",
  );

  const graphKey = db
    .prepare<[string, number, string], number>("SELECT key FROM graphs WHERE name = ? AND version = ? AND shape = ?")
    .pluck();
  const addGraph = db.prepare<[string, number, string]>("INSERT INTO graphs (name, version, shape) VALUES (?, ?, ?)");
  const channelKey = db
    .prepare<[number, string], number>("SELECT key FROM channels WHERE branch = ? AND name = ?")
    .pluck();
  const addChannel = db.prepare<[number, string]>("INSERT INTO channels (branch, name) VALUES (?, ?)");

  const runKey = db.prepare<[number, string], number>("SELECT key FROM runs WHERE thread = ? AND id = ?").pluck();
  const addRun = db.prepare(
    "INSERT INTO runs (thread, branch, id, graph, version, status, attempt, started, epoch, ended, error, name, metadata, input, more, sum)" +
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const changeRun = db.prepare(
    "UPDATE runs SET version = @version, status = @status, attempt = @attempt, epoch = @epoch, ended = @ended, error = @error," +
      " input = @input, more = @more, sum = " +
      changedRunSum +
      " WHERE key = @key",
  );
  const sumRun = db.prepare<[number]>(putRunSum);
  const startRun = db.prepare<[number, number]>("UPDATE runs SET started = ? WHERE key = ?");
  const knownRun = db.prepare<[number, string], { key: number; status: RunRow["status"]; newest: number }>(
    "SELECT r.key, r.status, b.run IS r.key AS newest FROM runs r JOIN branches b ON b.key = r.branch WHERE r.thread = ? AND r.id = ?",
  );
  const countQueued = db.prepare<[number, number]>("UPDATE threads SET queued = queued + ? WHERE key = ?");
  const cancelQueued = db.prepare<[number, Payload | null, number]>(
    "UPDATE runs SET status = 'cancelled', ended = ?, more = ?, input = NULL WHERE key = ?",
  );
  const newestRunOfThread = db.prepare<[number, number]>("UPDATE threads SET run = ? WHERE key = ?");
  const newestRunOfNamespace = db.prepare<[number, number]>("UPDATE branches SET run = ? WHERE key = ?");

  const addCheckpoint = db.prepare(
    "INSERT INTO checkpoints (key, step, parent, source, nodes, run, at, duration, seq, bytes, graph, hash, effects, effects_sum, control)" +
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const addChildCheckpoint = db.prepare<[number, number]>("INSERT INTO child_checkpoints (key, branch) VALUES (?, ?)");
  const addDelta = db.prepare("INSERT INTO deltas (key, kind, base, sum, text) VALUES (?, ?, ?, ?, ?)");
  const dropTasks = db.prepare<[number, number]>(
    "DELETE FROM effects WHERE branch = ? AND step = ? AND kind = 'task' AND effect <> 'once'",
  );
  const dropOutcomes = db.prepare<[number, number]>(
    "UPDATE effects SET outcome = NULL, sum = " +
      foldedEffectSum +
      " WHERE branch = ? AND step = ? AND effect <> 'once'",
  );
  const lastJournal = db.prepare<[number], number | null>("SELECT max(step) FROM effects WHERE branch = ?").pluck();
  const addMetadata = db.prepare<[number, string, string]>(
    "INSERT INTO run_metadata (run, name, value) VALUES (?, ?, ?)",
  );
  const putInterrupt = db.prepare(
    "INSERT INTO interrupts (branch, id, step, task, node, name, payload, schema, raised, expires, answer, answered, more, awaited, sum)" +
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" +
      " ON CONFLICT (branch, id) DO UPDATE SET step = excluded.step, task = excluded.task, node = excluded.node, name = excluded.name," +
      " payload = excluded.payload, schema = excluded.schema, raised = excluded.raised, expires = excluded.expires," +
      " answer = excluded.answer, answered = excluded.answered, more = excluded.more, awaited = excluded.awaited, sum = excluded.sum",
  );
  const clearAwaited = db.prepare<[number]>(
    "UPDATE interrupts INDEXED BY awaited_interrupts_of_branch SET awaited = 0 WHERE branch = ? AND awaited = 1",
  );

  const setAwaited = db.prepare<[number, string]>("UPDATE interrupts SET awaited = 1 WHERE branch = ? AND id = ?");
  const putTimer = db.prepare(
    "INSERT INTO timers (branch, id, kind, generation, due, about, sum) VALUES (?, ?, ?, ?, ?, ?, ?)" +
      " ON CONFLICT (branch, id) DO UPDATE SET kind = excluded.kind, generation = excluded.generation, due = excluded.due," +
      " about = excluded.about, sum = excluded.sum WHERE excluded.generation >= timers.generation",
  );
  const moveHead = db.prepare<[string, number]>("UPDATE threads SET head = ? WHERE key = ?");
  const addEvent = db.prepare<[number, number, number, number, number, Payload]>(
    "INSERT INTO events (thread, seq, branch, at, sum, text) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const dropTimer = db.prepare<[number, string, number]>(
    "DELETE FROM timers WHERE branch = ? AND id = ? AND generation <= ?",
  );

  function claim(
    request: ClaimRequest,
    releasedEpoch: number | undefined,
  ): { readonly claim: Claim; readonly claimed: ClaimedThread } {
    const { thread, graph, version, shape, at } = request;
    const found = threadState.get(thread);
    if (found === undefined && request.mustExist === true) throw storeRules.createUnknownThreadError(thread);
    const recovered = found !== undefined && refuseLiveOwner(thread, found, releasedEpoch);
    const known = found && updateStoredHead(thread, found);
    const writer = { key: getGraphKey(graph, version, shape), graph, version, shape };
    const state = known ?? createThread(thread, request.branch ?? "main", writer.key, at);
    const branch = request.branch ?? state.head;
    const namespace = reader.namespaces.find(thread, branch);
    if (namespace === undefined && known !== undefined && request.mustExist === true)
      throw storeRules.createUnknownBranchError(thread, branch);
    // A thread is created with its head branch: without this check, a damaged thread would restart over its existing
    // data.
    if (namespace === undefined && known?.head === branch)
      throw createCorruptError("the head branch is missing", { thread });
    const namespaceKey = namespace?.key ?? Number(addNamespace.run(state.key, branch, null, null).lastInsertRowid);
    const epoch = claimRow.get(owner.getId() ?? owner.register(at), state.key) as number;
    const head = reader.checkpoints.getNamespaceHead(thread, namespaceKey);
    const run = namespace === undefined || namespace.run === null ? undefined : reader.runs.get(namespace.run);
    const stored = { branch, namespaceKey: namespaceKey, namespace, head, run, recovered };
    return {
      claimed: createClaimedThread(thread, state, epoch, writer, stored),
      claim: createClaim(state, epoch, writer, stored),
    };
  }

  function createClaimedThread(
    thread: string,
    state: ThreadState,
    epoch: number,
    writer: ClaimedThread["writer"],
    { branch, namespaceKey, namespace, head, run }: StoredBranch,
  ): ClaimedThread {
    return {
      id: thread,
      key: state.key,
      epoch,
      writer,
      namespaces: new Map([[branch, createNamespaceState(branch, namespaceKey, head)]]),
      head: state,
      hasGraph: false,
      run: run === undefined ? undefined : { id: run.id, key: namespace?.run as number },
      queued: state.queued,
      isReleased: false,
      mayHaveTakenMessages: run !== undefined && run.status !== "done" && run.status !== "cancelled",
      mayAwaitAnswers: run === undefined ? head !== undefined : run.status !== "done",
      cipher: reader.ciphers.get(thread),
    };
  }

  function createClaim(
    state: Pick<ThreadState, "seq" | "checkpoint" | "queued">,
    epoch: number,
    { graph, version, shape }: GraphVersion,
    { branch, head, run, recovered }: Pick<StoredBranch, "branch" | "head" | "run" | "recovered">,
  ): Claim {
    return {
      epoch,
      branch,
      nextSeq: state.seq + 1,
      nextCheckpoint: state.checkpoint + 1,
      writtenBy:
        head === undefined
          ? { graph, version, shape }
          : { graph: head.graph, version: head.version, shape: head.shape },
      head: head === undefined ? undefined : toCheckpointRow(head),
      run,
      recovered,
      queued: state.queued,
    };
  }

  function defer(request: ClaimRequest): DeferredClaim | undefined {
    const { thread, graph, version, shape } = request;
    const self = owner.getId();
    if (self === undefined) return undefined;
    const state = threadState.get(thread);
    if (state === undefined) return request.mustExist === true ? undefined : deferNew(request);
    // An imported thread has epoch 0, like every imported thread: a replaced thread would not be detected.
    if (state.owner !== null || state.epoch === 0) return undefined;
    const branch = request.branch ?? state.head;
    const namespace = reader.namespaces.find(thread, branch);
    const key = graphKey.get(graph, version, shape);
    if (namespace === undefined || key === undefined) return undefined;
    const writer = { key, graph, version, shape };
    const head = reader.checkpoints.getNamespaceHead(thread, namespace.key);
    const run = namespace.run === null ? undefined : reader.runs.get(namespace.run);
    const stored = { branch, namespaceKey: namespace.key, namespace, head, run, recovered: false };
    const epoch = state.epoch + 1;
    return {
      claim: createClaim(state, epoch, writer, stored),
      claimThread: () => {
        const { seq, checkpoint, updated } = state;
        const taken = claimUnchangedRow.run(self, state.key, thread, state.epoch, seq, checkpoint, updated);
        return taken.changes === 0 ? undefined : createClaimedThread(thread, state, epoch, writer, stored);
      },
    };
  }

  /** Prepares the claim of a new thread, which is created by the claim. */
  function deferNew(request: ClaimRequest): DeferredClaim {
    const emptyBranch = { branch: request.branch ?? "main", head: undefined, run: undefined, recovered: false };
    return {
      claim: createClaim({ seq: 0, checkpoint: 0, queued: 0 }, 1, request, emptyBranch),
      claimThread: () =>
        threadState.get(request.thread) === undefined ? claim(request, undefined).claimed : undefined,
    };
  }

  function commit(commit: Commit, claimed: ClaimedThread | undefined): number {
    const { run, checkpoint, effects, interrupts, timers, events, deliveredMessages } = commit;
    const self = owner.getId();
    if (claimed === undefined || self === undefined || claimed.epoch !== commit.epoch)
      throw storeRules.createFencedError(commit);
    const oldHead = claimed.head ?? headOfThread.get(claimed.key) ?? emptyThreadHead;
    const newHead = advanceHead(commit, oldHead);
    if (isRowUnchanged(commit, claimed, oldHead, newHead)) checkFence(commit, claimed, self);
    else checkFenceAndWriteHead(commit, claimed, self, newHead);
    if (commit.after !== undefined && commit.after > oldHead.seq) throw storeRules.createGapError(commit);
    if (claimed.cipher?.hasNewestKey() === false) {
      reader.ciphers.forget();
      claimed.cipher = reader.ciphers.get(claimed.id);
    }
    let state = claimed.namespaces.get(commit.branch) ?? readNamespaceState(claimed, commit);
    for (const parentJournal of commit.parentJournals ?? []) writeParentJournal(claimed, parentJournal);
    if (run !== undefined) {
      const put = putRun(claimed, state, run);
      claimed.run = { id: run.id, key: put.key };
      if (put.starts) claimed.queued -= 1;
      if (run.status !== "waiting" && claimed.mayAwaitAnswers) {
        clearAwaited.run(state.key);
        claimed.mayAwaitAnswers = false;
      }
    }
    const foldedStep = checkpoint === undefined || checkpoint.row.step === state.step ? undefined : state.step;
    const foldedEffects = selectFoldedEffects(state, effects, foldedStep);
    let journal = state.journal;
    for (const effect of effects ?? []) {
      if (effect.step === foldedStep && (foldedEffects !== undefined || isFoldedTask(effect, journal))) continue;
      writeEffect(claimed.cipher, state, effect, effect.step === foldedStep);
      if (effect.step !== foldedStep && effect.step > journal) journal = effect.step;
    }
    if (journal > state.journal) state = { ...state, journal };
    if (checkpoint !== undefined) {
      storeRules.checkFollows(checkpoint, state.head?.id, oldHead.checkpoint, commit);
      if (foldedStep !== undefined && journal >= foldedStep) {
        dropTasks.run(state.key, foldedStep);
        dropOutcomes.run(state.key, foldedStep);
      }
      state = writeCheckpoint(claimed, state, checkpoint, foldedEffects);
    }
    if (interrupts !== undefined && interrupts.length > 0) claimed.mayAwaitAnswers = true;
    for (const interrupt of interrupts ?? []) writeInterrupt(claimed.cipher, state, interrupt);
    for (const change of timers ?? []) changeTimer(state.key, change);
    if (claimed.mayHaveTakenMessages || deliveredMessages !== undefined || commit.rolledBackRun !== undefined)
      moveInboxMessages(claimed, state, commit);
    for (const event of events ?? []) writeEvent(claimed, state.key, event);
    for (const artifact of commit.artifacts ?? []) artifacts.put(claimed, artifact);
    if (commit.longTerm !== undefined) longTerm.apply(commit.longTerm, storeRules.getLatestTime(commit));
    claimed.head = newHead;
    if (checkpoint !== undefined) claimed.hasGraph = true;
    cacheNamespace(claimed, state);
    return claimed.queued;
  }

  /**
   * Returns the effects of the folded step if none needs a row of its own; undefined otherwise, or if the step
   * already has rows.
   */
  function selectFoldedEffects(
    { journal }: NamespaceState,
    effects: readonly EffectRow[] = [],
    foldedStep: number | undefined,
  ): readonly EffectRow[] | undefined {
    if (foldedStep === undefined || journal >= foldedStep) return undefined;
    const ofStep = effects.filter((effect) => effect.step === foldedStep && !isFoldedTask(effect, journal));
    return ofStep.every(isFoldable) ? ofStep : undefined;
  }

  /** Writes journal rows of an enclosing namespace of the commit. */
  function writeParentJournal(claimed: ClaimedThread, { namespace: name, effects }: NamespaceJournal): void {
    const known = claimed.namespaces.get(name);
    const namespace = known === undefined ? reader.namespaces.find(claimed.id, name) : undefined;
    const state =
      known ??
      (namespace &&
        createNamespaceState(name, namespace.key, reader.checkpoints.getNamespaceHead(claimed.id, namespace.key)));
    if (state === undefined) throw storeRules.createUnknownBranchError(claimed.id, name);
    let { journal } = state;
    for (const effect of effects) {
      writeEffect(claimed.cipher, state, effect, false);
      journal = Math.max(journal, effect.step);
    }
    cacheNamespace(claimed, { ...state, journal });
  }

  /** Checks the epoch without a write to the row of the thread. */
  function checkFence(commit: Commit, claimed: ClaimedThread, self: number): void {
    const queued = queuedOfThread.get(claimed.key, commit.epoch, self);
    if (queued === undefined) throw storeRules.createFencedError(commit);
    claimed.queued = queued;
  }

  /**
   * Checks the epoch and writes the head of the thread. A changed queue length is read again: enqueueing does not
   * fence a run.
   */
  function checkFenceAndWriteHead(
    commit: Commit,
    claimed: ClaimedThread,
    self: number,
    { seq, checkpoint, updated }: ThreadHead,
  ): void {
    const graph = commit.checkpoint === undefined ? null : claimed.writer.key;
    const owner = commit.release === true ? null : self;
    while (
      fence.run(seq, checkpoint, updated, graph, owner, claimed.key, commit.epoch, self, claimed.queued).changes === 0
    )
      checkFence(commit, claimed, self);
  }

  function cacheNamespace({ namespaces }: ClaimedThread, state: NamespaceState): void {
    if (namespaces.size === maxCachedNamespaces && !namespaces.has(state.name))
      for (const oldest of namespaces.keys()) if (namespaces.delete(oldest)) break;
    namespaces.set(state.name, state);
  }

  /** Throws `thread_busy` for a thread with a live owner; returns true for a dead owner. */
  function refuseLiveOwner(thread: string, state: ThreadState, releasedEpoch: number | undefined): boolean {
    if (state.owner === null || state.epoch === releasedEpoch) return false;
    if (owner.isAlive(state.owner)) throw storeRules.createBusyError(thread, owner.describe(state.owner));
    return true;
  }

  /** Updates the row of a thread without a live owner to its head. */
  function updateStoredHead(thread: string, state: ThreadState): ThreadState {
    if (state.owner === null) return state;
    updateThreadHead.run(thread);
    return threadState.get(thread) ?? state;
  }

  function createBranch(write: BranchWrite, releasedEpoch: number | undefined): CheckpointRow {
    const { thread } = write;
    const found = threadState.get(thread);
    if (found === undefined) throw storeRules.createUnknownThreadError(thread);
    refuseLiveOwner(thread, found, releasedEpoch);
    const state = updateStoredHead(thread, found);
    const [outer, ...inner] = storeRules.resolveForkedNamespaces(write, {
      origin: (from) => reader.checkpoints.find(thread, from),
      has: (namespace) => reader.namespaces.find(thread, namespace) !== undefined,
    });
    const row = createNamespaceWithCheckpoint(thread, state, 1, outer, write.interrupts);
    inner.forEach((namespace, index) => {
      createNamespaceWithCheckpoint(thread, state, index + 2, namespace, []);
    });
    if (write.head === true) moveHead.run(write.branch, state.key);
    return row;
  }

  /** Creates a namespace with its first checkpoint, the `nth` new checkpoint of its thread in this write. */
  function createNamespaceWithCheckpoint(
    thread: string,
    { key, seq, checkpoint: last }: ThreadState,
    nth: number,
    { namespace: name, from, origin, checkpoint }: storeRules.ForkedNamespace<CheckpointColumns>,
    interrupts: readonly InterruptRow[],
  ): CheckpointRow {
    const { graph, version, shape } = origin;
    const writer = { graph, version, shape, key: getGraphKey(graph, version, shape) };
    const row = { ...checkpoint.row, id: last + nth, branch: name, parent: from, seq: seq + nth };
    const state = createNamespace(key, name, origin);
    const cipher = reader.ciphers.get(thread);
    writeCheckpoint({ id: thread, key, writer, run: undefined, cipher }, state, { row, deltas: checkpoint.deltas });
    for (const interrupt of interrupts) writeInterrupt(cipher, state, interrupt);
    advance.run(row.seq, row.id, row.at, key);
    return row;
  }

  function createThread(id: string, head: string, graph: number, at: number): ThreadState {
    const secret = storeCipher?.createSecret(id) ?? null;
    const key = Number(addThread.run(id, graph, head, at, at, secret).lastInsertRowid);
    return { key, head, owner: null, epoch: 0, seq: 0, checkpoint: 0, updated: at, queued: 0 };
  }

  /** Returns the stored state of a namespace, or of the child namespace created by this commit. */
  function readNamespaceState(claimed: ClaimedThread, commit: Commit): NamespaceState {
    const namespace = reader.namespaces.find(claimed.id, commit.branch);
    if (namespace === undefined) return createChildNamespace(claimed, commit);
    return createNamespaceState(
      commit.branch,
      namespace.key,
      reader.checkpoints.getNamespaceHead(claimed.id, namespace.key),
    );
  }

  function createNamespaceState(
    name: string,
    namespaceKey: number,
    head: CheckpointColumns | undefined,
  ): NamespaceState {
    return {
      name,
      key: namespaceKey,
      head: head === undefined ? undefined : { id: head.id, hash: head.hash },
      step: head?.step,
      journal: lastJournal.get(namespaceKey) ?? -1,
      channels: new Map(),
    };
  }

  function createChildNamespace(claimed: ClaimedThread, commit: Commit): NamespaceState {
    const parent = storeRules.getNewNamespaceParent(commit);
    if (!claimed.namespaces.has(parent) && reader.namespaces.find(claimed.id, parent) === undefined)
      throw storeRules.createUnknownBranchError(claimed.id, parent);
    const from = commit.checkpoint?.row.parent;
    return createNamespace(
      claimed.key,
      commit.branch,
      from === undefined ? undefined : reader.checkpoints.find(claimed.id, from),
    );
  }

  /** Creates an empty namespace; `origin` is the parent of its first checkpoint. */
  function createNamespace(thread: number, name: string, origin: CheckpointColumns | undefined): NamespaceState {
    const namespaceKey = Number(
      addNamespace.run(thread, name, origin?.namespace ?? null, origin?.id ?? null).lastInsertRowid,
    );
    const head = origin === undefined ? undefined : { id: origin.id, hash: origin.hash };
    return { name, key: namespaceKey, head, step: undefined, journal: -1, channels: new Map() };
  }

  /** Writes the row of a run; a new run, or a started queued run, becomes the newest run of its namespace. */
  function putRun(
    claimed: ClaimedThread,
    { key: namespaceKey }: NamespaceState,
    run: RunRow,
  ): { readonly key: number; readonly starts: boolean } {
    if (claimed.run?.id === run.id) {
      updateRun(claimed, claimed.run.key, run);
      return { key: claimed.run.key, starts: false };
    }
    const known = knownRun.get(claimed.key, run.id);
    if (known === undefined) {
      checkId("run", run.id);
      if (run.key !== undefined && reader.runs.findByKey(claimed.key, run.key) !== undefined)
        throw storeRules.createRunExistsError(run);
      const key = insertRun(claimed, namespaceKey, run, claimed.epoch);
      setNewestRun(claimed, namespaceKey, key);
      return { key, starts: false };
    }
    const starts = known.status === "queued";
    const wasQueued = known.newest === 0 && reader.runs.get(known.key)?.queuedAt !== undefined;
    if (!starts && wasQueued) throw storeRules.createRunExistsError(run);
    updateRun(claimed, known.key, run);
    if (starts) {
      startRun.run(run.startedAt, known.key);
      sumRun.run(known.key);
      countQueued.run(-1, claimed.key);
      setNewestRun(claimed, namespaceKey, known.key);
    }
    return { key: known.key, starts };
  }

  function setNewestRun(claimed: ClaimedThread, namespaceKey: number, key: number): void {
    newestRunOfThread.run(key, claimed.key);
    newestRunOfNamespace.run(key, namespaceKey);
  }

  function insertRun(
    claimed: Pick<ClaimedThread, "key" | "cipher">,
    namespaceKey: number,
    run: RunRow,
    epoch: number,
  ): number {
    const { id, graph, version, attempt, startedAt, endedAt, key, metadata } = run;
    const { error, input, more } = toRunPayload(claimed.cipher, run);
    const columns = [
      ...[
        claimed.key,
        namespaceKey,
        id,
        graph,
        version,
        toStoredStatus(run),
        attempt,
        startedAt,
        epoch,
        endedAt ?? null,
        error,
      ],
      ...[key ?? null, metadata === undefined ? null : JSON.stringify(metadata), input, more],
    ];
    const row = Number(addRun.run(...columns, computeColumnSum(columns)).lastInsertRowid);
    for (const [name, value] of Object.entries(metadata ?? {})) addMetadata.run(row, name, JSON.stringify(value));
    return row;
  }

  function updateRun({ epoch, cipher }: ClaimedThread, key: number, run: RunRow): void {
    const { version, attempt, endedAt } = run;
    const statusColumns = { status: toStoredStatus(run), ended: endedAt ?? null };
    changeRun.run({ key, version, attempt, epoch, ...statusColumns, ...toRunPayload(cipher, run) });
  }

  function enqueue({ thread, branch, run, stops }: QueueWrite): RunRow {
    checkId("run", run.id);
    const state = threadState.get(thread);
    if (state === undefined) throw storeRules.createUnknownThreadError(thread);
    const namespace = reader.namespaces.find(thread, branch);
    if (namespace === undefined || storeRules.isChildNamespace(namespace.name))
      throw storeRules.createUnknownBranchError(thread, branch ?? state.head);
    const known = run.key === undefined ? undefined : reader.runs.findByKey(state.key, run.key);
    if (known !== undefined) return known;
    const newest = namespace.run === null || stops === undefined ? undefined : reader.runs.get(namespace.run);
    const row: RunRow = {
      ...run,
      thread,
      branch: namespace.name,
      ...(stops === undefined || newest === undefined ? {} : { stops: { run: newest.id, how: stops } }),
    };
    if (knownRun.get(state.key, run.id) !== undefined) throw storeRules.createRunExistsError(row);
    insertRun({ key: state.key, cipher: reader.ciphers.get(thread) }, namespace.key, row, 0);
    countQueued.run(1, state.key);
    return row;
  }

  function dequeue(
    thread: string,
    id: string,
    { at, reason }: { readonly at: number; readonly reason: string },
  ): boolean {
    const state = threadState.get(thread);
    const known = state === undefined ? undefined : knownRun.get(state.key, id);
    const row = known?.status === "queued" ? reader.runs.get(known.key) : undefined;
    if (state === undefined || known === undefined || row === undefined) return false;
    cancelQueued.run(at, toRunPayload(reader.ciphers.get(thread), { ...row, reason }).more, known.key);
    sumRun.run(known.key);
    countQueued.run(-1, state.key);
    return true;
  }

  function post({ thread, branch, ...message }: InboxMessageWrite): InboxMessage {
    checkId("inbox message", message.id);
    const state = threadState.get(thread);
    if (state === undefined) throw storeRules.createUnknownThreadError(thread);
    const namespace = reader.namespaces.find(thread, branch);
    if (namespace === undefined || storeRules.isChildNamespace(namespace.name))
      throw storeRules.createUnknownBranchError(thread, branch ?? state.head);
    const known = reader.inbox.listWaiting(thread, namespace.name).find(({ id }) => id === message.id);
    if (known !== undefined) return known;
    const row: InboxMessage = { ...message, branch: namespace.name };
    inboxMessages.write({ thread, key: namespace.key, name: namespace.name, cipher: reader.ciphers.get(thread) }, row);
    return row;
  }

  /** Marks messages as taken by the run, restores them, or deletes them with the end of the run. */
  function moveInboxMessages(
    claimed: ClaimedThread,
    { name, key: namespaceKey }: NamespaceState,
    { deliveredMessages, rolledBackRun, checkpoint, run }: Commit,
  ): void {
    const inbox = { thread: claimed.id, key: namespaceKey, name, cipher: claimed.cipher };
    if (deliveredMessages !== undefined && checkpoint !== undefined) {
      inboxMessages.markTaken(inbox, deliveredMessages, checkpoint.row.run);
      claimed.mayHaveTakenMessages = true;
    }
    if (rolledBackRun !== undefined) inboxMessages.restore(inbox, rolledBackRun);
    if (run?.status === "done" || run?.status === "cancelled") inboxMessages.deleteTaken(namespaceKey, run.id);
  }

  /**
   * Writes an effect; an effect of a step folded by the same commit is written without its outcome, unless it is
   * once.
   */
  function writeEffect(
    cipher: ThreadCipher | undefined,
    { key, name }: NamespaceState,
    effect: EffectRow,
    isFolded: boolean,
  ): void {
    const storedEffect = isFolded && effect.effect !== "once" ? { ...effect, outcome: undefined } : effect;
    effectRows.put({ namespace: { key, name }, cipher }, storedEffect);
  }

  function writeCheckpoint(
    claimed: Pick<ClaimedThread, "id" | "key" | "writer" | "run" | "cipher">,
    state: NamespaceState,
    { row, deltas: newDeltas }: CheckpointWrite,
    effects: readonly EffectRow[] = [],
  ): NamespaceState {
    if (row.id > maxCheckpointId) throw createThreadFullError(claimed.id);
    const deltas = newDeltas.map((delta) => ({ ...delta, base: storeRules.isBase(delta) }));
    const { cipher } = claimed;
    const checkpoint = row.branch === state.name ? row : { ...row, branch: state.name };
    const hash = hashCheckpoint(checkpoint, claimed.writer, deltas, { parentHash: state.head?.hash, cipher });
    const run = claimed.run?.id === row.run ? claimed.run.key : (runKey.get(claimed.key, row.run) ?? row.run);
    const location = { thread: claimed.id, namespace: state.name, checkpoint: row.id };
    const folded: FoldedColumns =
      state.step === undefined ? nothingFolded : toFoldedColumns(location, state.step, effects);
    addCheckpoint.run(
      toRowKey(state.key, row.id),
      row.step,
      row.parent ?? null,
      row.source,
      JSON.stringify(row.nodes),
      typeof run === "number" ? BigInt(run) : run,
      row.at,
      row.durationMs,
      row.seq,
      row.bytes,
      claimed.writer.key,
      hash,
      folded.effects,
      folded.effects_sum,
      cipher === undefined ? row.control : cipher.encrypt(row.control, toControlContext(state.name, row.id)),
    );
    if (storeRules.isChildNamespace(state.name)) addChildCheckpoint.run(toRowKey(claimed.key, row.id), state.key);
    for (const delta of deltas) {
      const { sum, text } = toDeltaColumns(cipher, location, delta);
      addDelta.run(toRowKey(getChannelKey(state, delta.channel), row.id), delta.kind, delta.base ? 1 : 0, sum, text);
    }
    return { ...state, head: { id: row.id, hash }, step: row.step };
  }

  function writeInterrupt(cipher: ThreadCipher | undefined, state: NamespaceState, interrupt: InterruptRow): void {
    const { id, step, task, node, key, schema, raisedAt, expiresAt, answeredAt, expiredAt } = interrupt;
    const { sum, payload, answer, more } = toInterruptPayload(cipher, state.name, interrupt);
    putInterrupt.run(
      state.key,
      checkWellFormed(id),
      step,
      task,
      node,
      key,
      payload,
      schema === undefined ? null : JSON.stringify(schema),
      raisedAt,
      expiresAt ?? null,
      answer,
      answeredAt ?? null,
      more,
      answer === null && expiredAt === undefined ? 1 : 0,
      sum,
    );
  }

  function writeEvent(
    { key, cipher }: Pick<ClaimedThread, "key" | "cipher">,
    namespaceKey: number,
    event: EventRow,
  ): void {
    const { sum, text } = toEventColumns(cipher, event);
    addEvent.run(key, event.seq, namespaceKey, event.at, sum, text);
  }

  /** Deletes a thread without a live owner. */
  function remove(thread: string, releasedEpoch: number | undefined): void {
    const state = threadState.get(thread);
    if (state === undefined) throw storeRules.createUnknownThreadError(thread);
    refuseLiveOwner(thread, state, releasedEpoch);
    eraser.eraseThread(state.key);
  }

  /** Inserts a thread from its export. */
  function insertThread(threadExport: ThreadExport): void {
    if (threadState.get(threadExport.id) !== undefined) throw storeRules.createThreadExistsError(threadExport.id);
    const { graph, version, shape } = threadExport.writtenBy;
    const { key } = createThread(
      threadExport.id,
      threadExport.headBranch,
      getGraphKey(graph, version, shape),
      threadExport.createdAt,
    );
    const cipher = reader.ciphers.get(threadExport.id);
    const states = insertNamespaces(key, threadExport);
    const runs = new Map<string, number>();
    for (const run of threadExport.runs) {
      const state = states.get(run.branch);
      if (state !== undefined)
        runs.set(run.id, insertRun({ key, cipher }, state.key, { ...run, thread: threadExport.id }, 0));
    }
    const written = { id: threadExport.id, key, run: undefined, cipher };
    for (const namespace of threadExport.namespaces) {
      const state = states.get(namespace.name);
      if (state === undefined) continue;
      for (const effect of namespace.effects) writeEffect(cipher, state, effect, false);
      for (const interrupt of namespace.interrupts) writeInterrupt(cipher, state, interrupt);
      clearAwaited.run(state.key);
      for (const id of namespace.awaited) setAwaited.run(state.key, id);
      for (const timer of namespace.timers) changeTimer(state.key, { arm: timer });
      for (const message of namespace.inbox)
        inboxMessages.write({ thread: threadExport.id, key: state.key, name: namespace.name, cipher }, message);
      const run = namespace.run === undefined ? undefined : runs.get(namespace.run);
      if (run !== undefined) newestRunOfNamespace.run(run, state.key);
    }
    insertCheckpoints(written, threadExport, states);
    for (const { row, body } of threadExport.artifacts) artifacts.put(written, { row, body });
    for (const event of threadExport.events) {
      const state = states.get(event.branch);
      if (state !== undefined) writeEvent(written, state.key, event);
    }
    const run = threadExport.run === undefined ? undefined : runs.get(threadExport.run);
    if (run !== undefined) newestRunOfThread.run(run, key);
    countQueued.run(threadExport.runs.filter(({ status }) => status === "queued").length, key);
    advance.run(threadExport.seq, threadExport.checkpoint, threadExport.updatedAt, key);
  }

  function insertNamespaces(thread: number, threadExport: ThreadExport): Map<string, NamespaceState> {
    const states = new Map<string, NamespaceState>();
    const namespaceOfCheckpoint = new Map(
      threadExport.namespaces.flatMap(({ name, checkpoints }) => checkpoints.map(({ row }) => [row.id, name])),
    );
    for (const { name, from } of threadExport.namespaces) {
      const origin = from === undefined ? undefined : states.get(namespaceOfCheckpoint.get(from) ?? "");
      const namespaceKey = Number(addNamespace.run(thread, name, origin?.key ?? null, from ?? null).lastInsertRowid);
      states.set(name, { name, key: namespaceKey, head: undefined, step: undefined, journal: -1, channels: new Map() });
    }
    return states;
  }

  /** Inserts the checkpoints of all namespaces in id order: each parent is an earlier checkpoint or a pruned range. */
  function insertCheckpoints(
    thread: Pick<ClaimedThread, "id" | "key" | "run" | "cipher">,
    threadExport: ThreadExport,
    states: ReadonlyMap<string, NamespaceState>,
  ): void {
    const hashes = new Map<number, string>();
    for (const { name, prunedRanges: rangesOfNamespace } of threadExport.namespaces) {
      const state = states.get(name);
      if (state === undefined) continue;
      const at = { thread: thread.id, namespace: { key: state.key, name }, cipher: thread.cipher };
      let after = 0;
      for (const range of rangesOfNamespace) {
        // The original hash is unknown: the chain starts at the hash of the remaining deltas.
        const hash = hashRemainingDeltas(thread.cipher, name, range.deltas);
        prunedRanges.put(at, after, range, { hash, before: [] });
        hashes.set(range.id, hash);
        after = range.id;
      }
    }
    const all = threadExport.namespaces.flatMap(({ name, checkpoints }) =>
      checkpoints.map((checkpoint) => ({ name, checkpoint })),
    );
    for (const { name, checkpoint } of all.sort((left, right) => left.checkpoint.row.id - right.checkpoint.row.id)) {
      const { row, deltas, writtenBy } = checkpoint;
      const { graph, version, shape } = writtenBy;
      const end = states.get(name);
      if (end === undefined) continue;
      const hash = row.parent === undefined ? undefined : hashes.get(row.parent);
      const head = row.parent === undefined || hash === undefined ? undefined : { id: row.parent, hash };
      const writer = { graph, version, shape, key: getGraphKey(graph, version, shape) };
      const written = writeCheckpoint({ ...thread, writer }, { ...end, head }, { row, deltas });
      hashes.set(row.id, written.head?.hash ?? "");
    }
  }

  function changeTimer(namespaceKey: number, change: TimerChange): void {
    if ("drop" in change) {
      dropTimer.run(namespaceKey, change.drop.id, change.drop.generation);
      return;
    }
    const { id, kind, generation, dueAt, about } = change.arm;
    putTimer.run(
      namespaceKey,
      checkWellFormed(id),
      kind,
      generation,
      dueAt,
      checkWellFormed(about),
      computeTimerSum(change.arm),
    );
  }

  function getGraphKey(name: string, version: number, shape: string): number {
    return graphKey.get(name, version, shape) ?? Number(addGraph.run(name, version, shape).lastInsertRowid);
  }

  function getChannelKey({ key: namespaceKey, channels }: NamespaceState, name: string): number {
    const known =
      channels.get(name) ??
      channelKey.get(namespaceKey, name) ??
      Number(addChannel.run(namespaceKey, checkWellFormed(name)).lastInsertRowid);
    channels.set(name, known);
    return known;
  }

  return {
    claim,
    defer,
    commit,
    createBranch,
    enqueue,
    dequeue,
    post,
    remove,
    insert: insertThread,
    prune: (write) => retention.prune(write),
    release: (claimed) => {
      const self = owner.getId();
      if (self !== undefined) releaseRow.run(claimed.key, claimed.epoch, self);
    },
  };
}

/** Returns true for a task outcome that is useless after the fold of its step and has no row to remove. */
function isFoldedTask({ step, kind, effect }: EffectRow, journal: number): boolean {
  return kind === "task" && effect !== "once" && journal < step;
}

const emptyThreadHead: ThreadHead = { seq: 0, checkpoint: 0, updated: 0 };

/** Returns the head of a thread after a commit. */
function advanceHead(commit: Commit, { seq, checkpoint, updated }: ThreadHead): ThreadHead {
  return {
    seq: Math.max(seq, commit.seq),
    checkpoint: Math.max(checkpoint, commit.checkpoint?.row.id ?? 0),
    updated: Math.max(updated, storeRules.getChangeTime(commit)),
  };
}

/**
 * Returns true if the row of a thread needs no update because the checkpoint contains the same data: a superstep, or
 * journal rows only. Lists read the checkpoints only of threads with an active run.
 */
function isRowUnchanged(
  { checkpoint, run, events, release }: Commit,
  { hasGraph, run: activeRun }: ClaimedThread,
  oldHead: ThreadHead,
  newHead: ThreadHead,
): boolean {
  if (run !== undefined || release === true || (events !== undefined && events.length > 0)) return false;
  if (checkpoint === undefined) return newHead.seq === oldHead.seq && newHead.updated === oldHead.updated;
  const { id, seq, at } = checkpoint.row;
  return (
    hasGraph && activeRun !== undefined && id === newHead.checkpoint && seq === newHead.seq && at === newHead.updated
  );
}

function createThreadFullError(thread: string): StatewrightError {
  return new StatewrightError("store_full", {
    what: `thread "${thread}" has reached the maximum number of checkpoints (${maxCheckpointId})`,
    next: "Continue in a new thread",
    place: { thread },
  });
}
