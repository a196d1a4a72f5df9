/** Writing: what a claim, a commit and a fork change, each inside a transaction that the committer gives. */

import {
  type BranchWrite,
  type CheckpointRow,
  type CheckpointWrite,
  type Claim,
  type ClaimRequest,
  type Commit,
  checkId,
  type EffectRow,
  type EventRow,
  type InterruptRow,
  type LetterRow,
  type LetterWrite,
  type LineJournal,
  type PruneWrite,
  type QueueWrite,
  type RunRow,
  StatewrightError,
  storeRules,
  type ThreadImage,
  type TimerChange,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { Payload, Seals, Vault } from "../encryption/cipher.ts";
import { controlPlace, deltaColumns, factColumns, questionPayload, runPayload } from "../encryption/encrypted-rows.ts";
import type { Owner } from "../file/owner.ts";
import { keyAt, largestCheckpoint } from "../file/schema.ts";
import { corrupt } from "../file/store-errors.ts";
import type { Line, Reader } from "../read/reader.ts";
import { reachedAt, reachedCheckpoint, reachedSeq, settleReached } from "../read/thread-head.ts";
import { createEffectRows } from "../rows/effect-rows.ts";
import { type FoldedColumns, foldedColumns, isToldOnly, nothingFolded } from "../rows/folded-effects.ts";
import { changedRunSum, foldedEffectSum, putRunSum, sumOfColumns } from "../rows/row-sums.ts";
import { type CheckpointColumns, checkpointHash, checkpointRow, timerSum, type WrittenBy } from "../rows/rows.ts";
import { storedStatus } from "../rows/run-status.ts";
import { createEraser } from "../rows/thread-tables.ts";
import { wellFormed } from "../rows/well-formed.ts";
import type { Artifacts } from "./artifacts.ts";
import { createLetters } from "./inbox-messages.ts";
import type { LongTermTable } from "./long-term.ts";
import { createCuts, keptHash } from "./pruned-ranges.ts";
import { createRetention, type Piece } from "./retention.ts";

/** A thread that this store owns, and what it knows of it without asking the file again. */
export interface Held {
  readonly id: string;
  readonly key: number;
  readonly epoch: number;
  readonly writer: WrittenBy & { readonly key: number };
  /** The ends of the lines that were written, by name; what is not there must be read again. */
  readonly ends: Map<string, End>;
  /** What the thread has come to on all its lines; absent when it must be read again. */
  reached: Reached | undefined;
  /** Its row names the graph that writes it. */
  named: boolean;
  /** The run that was written last. */
  run: RunKey | undefined;
  /** How many runs are queued on the thread, as far as it is known. */
  queued: number;
  /** Its run has let it go, which could not be written. */
  letGo: boolean;
  /** Its run may have taken letters in. */
  tookLetters: boolean;
  /** There may be questions that wait for an answer. */
  mayAsk: boolean;
  /** What its values are sealed with. */
  seals: Seals | undefined;
}

/** The last number of a thread's durable events, the last id of its checkpoints, and when it changed last. */
interface Reached {
  readonly seq: number;
  readonly checkpoint: number;
  readonly updated: number;
}

interface RunKey {
  readonly id: string;
  readonly key: number;
}

interface End {
  readonly name: string;
  readonly line: number;
  /** What the next checkpoint of the line goes on from. */
  readonly head: { readonly id: number; readonly hash: string } | undefined;
  /** The step whose journal the next checkpoint folds; absent before the first checkpoint of the line. */
  readonly step: number | undefined;
  /** The last step of the line that has journal rows in the file; -1 when none has. */
  readonly journal: number;
  /** Keys of the line's channels, as far as they were needed. */
  readonly channels: Map<string, number>;
}

/** So many ends are remembered for a thread; of more lines, those that were met first are read again. */
const mostEnds = 4_096;

/** What was written to a line is not in the file. */
export function forgetLine(held: Held, line: string): void {
  held.ends.delete(line);
  held.reached = undefined;
  held.named = false;
  held.run = undefined;
  held.mayAsk = true;
}

/** A thread that is free to take, and how to take it if nobody has come to it meanwhile. */
export interface DeferredClaim {
  /** The claim as it will be. */
  readonly claim: Claim;
  /** Take the thread, inside the transaction that writes it first. Gives nothing where it is not as it was. */
  take(): Held | undefined;
}

export interface Writer {
  /** Look whether a thread can be taken without a write of its own; inside a read. Gives nothing where it must be claimed at once. */
  defer(request: ClaimRequest): DeferredClaim | undefined;
  /** Take a thread that nobody alive holds; one that is held under the epoch `letGoAt` counts as let go. */
  claim(request: ClaimRequest, letGoAt: number | undefined): { readonly claim: Claim; readonly held: Held };
  /** Gives how many runs are queued on the thread. */
  commit(commit: Commit, held: Held | undefined): number;
  enqueue(write: QueueWrite): RunRow;
  dequeue(thread: string, run: string, ended: { readonly at: number; readonly reason: string }): boolean;
  post(write: LetterWrite): LetterRow;
  branch(write: BranchWrite, letGoAt: number | undefined): CheckpointRow;
  /** Remove a thread that nobody alive holds. */
  remove(thread: string, letGoAt: number | undefined): void;
  insert(image: ThreadImage): void;
  /** Old checkpoints go, piece by piece; gives how many went. */
  prune(write: PruneWrite): Generator<Piece, number>;
  /** Let a thread go, inside the last transaction. */
  release(held: Held): void;
}

interface ThreadState extends Reached {
  readonly key: number;
  readonly head: string;
  readonly owner: number | null;
  readonly epoch: number;
  readonly queued: number;
}

/** What whoever takes a thread finds of a branch. */
interface Found {
  readonly branch: string;
  readonly lineKey: number;
  readonly line: Line | undefined;
  readonly head: CheckpointColumns | undefined;
  readonly run: RunRow | undefined;
  readonly recovered: boolean;
}

export function createWriter(
  db: Database,
  {
    owner,
    reader,
    vault,
    artifacts,
    longTerm,
  }: {
    readonly owner: Owner;
    readonly reader: Reader;
    readonly vault: Vault | undefined;
    readonly artifacts: Artifacts;
    readonly longTerm: Pick<LongTermTable, "apply">;
  },
): Writer {
  const letters = createLetters(db);
  const cuts = createCuts(db);
  const eraser = createEraser(db);
  const effectRows = createEffectRows(db);
  const retain = createRetention(db, { reader, cuts, eraser, effects: effectRows });
  const threadState = db.prepare<[string], ThreadState>(
    "SELECT key, head, owner, epoch, seq, checkpoint, updated, queued FROM threads WHERE id = ?",
  );
  const addThread = db.prepare<[string, number, string, number, number, Uint8Array | null]>(
    "INSERT INTO threads (id, graph, head, epoch, seq, checkpoint, queued, created, updated, secret) VALUES (?, ?, ?, 0, 0, 0, 0, ?, ?, ?)",
  );
  const addLine = db.prepare<[number, string, number | null, number | null]>(
    "INSERT INTO branches (thread, name, parent, origin) VALUES (?, ?, ?, ?)",
  );
  const take = db
    .prepare<[number, number], number>("UPDATE threads SET owner = ?, epoch = epoch + 1 WHERE key = ? RETURNING epoch")
    .pluck();
  const takeUnchanged = db.prepare<[number, number, string, number, number, number, number]>(
    "UPDATE threads SET owner = ?, epoch = epoch + 1" +
      " WHERE key = ? AND id = ? AND epoch = ? AND owner IS NULL AND seq = ? AND checkpoint = ? AND updated = ?",
  );
  const advance = db.prepare<[number, number, number, number]>(
    "UPDATE threads SET seq = ?, checkpoint = ?, updated = max(updated, ?) WHERE key = ?",
  );
  const letGo = db.prepare<[number, number, number]>(
    "UPDATE threads AS t SET owner = NULL, " + settleReached + " WHERE t.key = ? AND t.epoch = ? AND t.owner = ?",
  );
  const settle = db.prepare<[string]>("UPDATE threads AS t SET " + settleReached + " WHERE t.id = ?");
  const fence = db.prepare<[number, number, number, number | null, number | null, number, number, number, number]>(
    "UPDATE threads SET seq = ?, checkpoint = ?, updated = ?, graph = coalesce(?, graph), owner = ?" +
      " WHERE key = ? AND epoch = ? AND owner = ? AND queued = ?",
  );
  const queuedOf = db
    .prepare<[number, number, number], number>("SELECT queued FROM threads WHERE key = ? AND epoch = ? AND owner = ?")
    .pluck();
  const reachedOf = db.prepare<[number], Reached>(
    "SELECT " +
      reachedSeq +
      " AS seq, " +
      reachedCheckpoint +
      " AS checkpoint, " +
      reachedAt +
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
  const beginRun = db.prepare<[number, number]>("UPDATE runs SET started = ? WHERE key = ?");
  const knownRun = db.prepare<[number, string], { key: number; status: RunRow["status"]; newest: number }>(
    "SELECT r.key, r.status, b.run IS r.key AS newest FROM runs r JOIN branches b ON b.key = r.branch WHERE r.thread = ? AND r.id = ?",
  );
  const countQueued = db.prepare<[number, number]>("UPDATE threads SET queued = queued + ? WHERE key = ?");
  const cancelQueued = db.prepare<[number, Payload | null, number]>(
    "UPDATE runs SET status = 'cancelled', ended = ?, more = ?, input = NULL WHERE key = ?",
  );
  const newestRunOfThread = db.prepare<[number, number]>("UPDATE threads SET run = ? WHERE key = ?");
  const newestRunOfLine = db.prepare<[number, number]>("UPDATE branches SET run = ? WHERE key = ?");

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
  const awaitNothing = db.prepare<[number]>(
    "UPDATE interrupts INDEXED BY questions_of_branch SET awaited = 0 WHERE branch = ? AND awaited = 1",
  );

  const awaitAgain = db.prepare<[number, string]>("UPDATE interrupts SET awaited = 1 WHERE branch = ? AND id = ?");
  const putTimer = db.prepare(
    "INSERT INTO timers (branch, id, kind, generation, due, about, sum) VALUES (?, ?, ?, ?, ?, ?, ?)" +
      " ON CONFLICT (branch, id) DO UPDATE SET kind = excluded.kind, generation = excluded.generation, due = excluded.due," +
      " about = excluded.about, sum = excluded.sum WHERE excluded.generation >= timers.generation",
  );
  const moveHead = db.prepare<[string, number]>("UPDATE threads SET head = ? WHERE key = ?");
  const addFact = db.prepare<[number, number, number, number, number, Payload]>(
    "INSERT INTO facts (thread, seq, branch, at, sum, text) VALUES (?, ?, ?, ?, ?, ?)",
  );
  const dropTimer = db.prepare<[number, string, number]>(
    "DELETE FROM timers WHERE branch = ? AND id = ? AND generation <= ?",
  );

  function claim(request: ClaimRequest, letGoAt: number | undefined): { readonly claim: Claim; readonly held: Held } {
    const { thread, graph, version, shape, at } = request;
    const found = threadState.get(thread);
    if (found === undefined && request.mustExist === true) throw storeRules.unknownThread(thread);
    const recovered = found !== undefined && refuseHeld(thread, found, letGoAt);
    const known = found && settled(thread, found);
    const writer = { key: keyOfGraph(graph, version, shape), graph, version, shape };
    const state = known ?? createThread(thread, request.branch ?? "main", writer.key, at);
    const branch = request.branch ?? state.head;
    const line = reader.line(thread, branch);
    if (line === undefined && known !== undefined && request.mustExist === true)
      throw storeRules.unknownBranch(thread, branch);
    // A thread is made with its head branch: one without it would begin anew, over what it has.
    if (line === undefined && known?.head === branch) throw corrupt("its head branch is not there", { thread });
    const lineKey = line?.key ?? Number(addLine.run(state.key, branch, null, null).lastInsertRowid);
    const epoch = take.get(owner.id() ?? owner.register(at), state.key) as number;
    const head = reader.headOf(thread, lineKey);
    const run = line === undefined || line.run === null ? undefined : reader.run(line.run);
    const there = { branch, lineKey, line, head, run, recovered };
    return { held: heldBy(thread, state, epoch, writer, there), claim: claimOf(state, epoch, writer, there) };
  }

  function heldBy(
    thread: string,
    state: ThreadState,
    epoch: number,
    writer: Held["writer"],
    { branch, lineKey, line, head, run }: Found,
  ): Held {
    return {
      id: thread,
      key: state.key,
      epoch,
      writer,
      ends: new Map([[branch, endAt(branch, lineKey, head)]]),
      reached: state,
      named: false,
      run: run === undefined ? undefined : { id: run.id, key: line?.run as number },
      queued: state.queued,
      letGo: false,
      tookLetters: run !== undefined && run.status !== "done" && run.status !== "cancelled",
      mayAsk: run === undefined ? head !== undefined : run.status !== "done",
      seals: reader.seals(thread),
    };
  }

  function claimOf(
    state: Pick<ThreadState, "seq" | "checkpoint" | "queued">,
    epoch: number,
    { graph, version, shape }: WrittenBy,
    { branch, head, run, recovered }: Pick<Found, "branch" | "head" | "run" | "recovered">,
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
      head: head === undefined ? undefined : checkpointRow(head),
      run,
      recovered,
      queued: state.queued,
    };
  }

  function defer(request: ClaimRequest): DeferredClaim | undefined {
    const { thread, graph, version, shape } = request;
    const self = owner.id();
    if (self === undefined) return undefined;
    const state = threadState.get(thread);
    if (state === undefined) return request.mustExist === true ? undefined : deferNew(request);
    // One that was taken in with its image has the epoch that any such has: it would not be told from another one.
    if (state.owner !== null || state.epoch === 0) return undefined;
    const branch = request.branch ?? state.head;
    const line = reader.line(thread, branch);
    const key = graphKey.get(graph, version, shape);
    if (line === undefined || key === undefined) return undefined;
    const writer = { key, graph, version, shape };
    const head = reader.headOf(thread, line.key);
    const run = line.run === null ? undefined : reader.run(line.run);
    const there = { branch, lineKey: line.key, line, head, run, recovered: false };
    const epoch = state.epoch + 1;
    return {
      claim: claimOf(state, epoch, writer, there),
      take: () => {
        const { seq, checkpoint, updated } = state;
        const taken = takeUnchanged.run(self, state.key, thread, state.epoch, seq, checkpoint, updated);
        return taken.changes === 0 ? undefined : heldBy(thread, state, epoch, writer, there);
      },
    };
  }

  /** The claim of a thread that is not there yet: it is made when it is taken. */
  function deferNew(request: ClaimRequest): DeferredClaim {
    const nothing = { branch: request.branch ?? "main", head: undefined, run: undefined, recovered: false };
    return {
      claim: claimOf({ seq: 0, checkpoint: 0, queued: 0 }, 1, request, nothing),
      take: () => (threadState.get(request.thread) === undefined ? claim(request, undefined).held : undefined),
    };
  }

  function commit(commit: Commit, held: Held | undefined): number {
    const { run, checkpoint, effects, interrupts, timers, events, taken } = commit;
    const self = owner.id();
    if (held === undefined || self === undefined || held.epoch !== commit.epoch) throw storeRules.fenced(commit);
    const before = held.reached ?? reachedOf.get(held.key) ?? nothingReached;
    const reached = reachedBy(commit, before);
    if (leavesRow(commit, held, before, reached)) passFence(commit, held, self);
    else passFenceWith(commit, held, self, reached);
    if (commit.after !== undefined && commit.after > before.seq) throw storeRules.leavesGap(commit);
    if (held.seals?.isNewest() === false) {
      reader.forgetSeals();
      held.seals = reader.seals(held.id);
    }
    let end = held.ends.get(commit.branch) ?? readEnd(held, commit);
    for (const around of commit.around ?? []) writeAround(held, around);
    if (run !== undefined) {
      const put = putRun(held, end, run);
      held.run = { id: run.id, key: put.key };
      if (put.begins) held.queued -= 1;
      if (run.status !== "waiting" && held.mayAsk) {
        awaitNothing.run(end.line);
        held.mayAsk = false;
      }
    }
    const folded = checkpoint === undefined || checkpoint.row.step === end.step ? undefined : end.step;
    const told = foldedHere(end, effects, folded);
    let journal = end.journal;
    for (const effect of effects ?? []) {
      if (effect.step === folded && (told !== undefined || isFoldedTask(effect, journal))) continue;
      writeEffect(held.seals, end, effect, effect.step === folded);
      if (effect.step !== folded && effect.step > journal) journal = effect.step;
    }
    if (journal > end.journal) end = { ...end, journal };
    if (checkpoint !== undefined) {
      storeRules.checkFollows(checkpoint, end.head?.id, before.checkpoint, commit);
      if (folded !== undefined && journal >= folded) {
        dropTasks.run(end.line, folded);
        dropOutcomes.run(end.line, folded);
      }
      end = writeCheckpoint(held, end, checkpoint, told);
    }
    if (interrupts !== undefined && interrupts.length > 0) held.mayAsk = true;
    for (const interrupt of interrupts ?? []) writeInterrupt(held.seals, end, interrupt);
    for (const change of timers ?? []) changeTimer(end.line, change);
    if (held.tookLetters || taken !== undefined || commit.givenBack !== undefined) moveLetters(held, end, commit);
    for (const fact of events ?? []) writeFact(held, end.line, fact);
    for (const artifact of commit.artifacts ?? []) artifacts.put(held, artifact);
    if (commit.longTerm !== undefined) longTerm.apply(commit.longTerm, storeRules.latestTime(commit));
    held.reached = reached;
    if (checkpoint !== undefined) held.named = true;
    remember(held, end);
    return held.queued;
  }

  /** Effects of the folded step that need no rows of their own; absent where one of them does, or the step has rows already. */
  function foldedHere(
    { journal }: End,
    effects: readonly EffectRow[] = [],
    folded: number | undefined,
  ): readonly EffectRow[] | undefined {
    if (folded === undefined || journal >= folded) return undefined;
    const ofStep = effects.filter((effect) => effect.step === folded && !isFoldedTask(effect, journal));
    return ofStep.every(isToldOnly) ? ofStep : undefined;
  }

  /** Journal rows of a line that the commit's own stands inside. */
  function writeAround(held: Held, { line: name, effects }: LineJournal): void {
    const known = held.ends.get(name);
    const line = known === undefined ? reader.line(held.id, name) : undefined;
    const end = known ?? (line && endAt(name, line.key, reader.headOf(held.id, line.key)));
    if (end === undefined) throw storeRules.unknownBranch(held.id, name);
    let { journal } = end;
    for (const effect of effects) {
      writeEffect(held.seals, end, effect, false);
      journal = Math.max(journal, effect.step);
    }
    remember(held, { ...end, journal });
  }

  /** The epoch is checked; the row of the thread is not written. */
  function passFence(commit: Commit, held: Held, self: number): void {
    const queued = queuedOf.get(held.key, commit.epoch, self);
    if (queued === undefined) throw storeRules.fenced(commit);
    held.queued = queued;
  }

  /** The same, with what the thread has come to: where the length of the queue has changed it is read, which costs others nothing. */
  function passFenceWith(commit: Commit, held: Held, self: number, { seq, checkpoint, updated }: Reached): void {
    const graph = commit.checkpoint === undefined ? null : held.writer.key;
    const owner = commit.release === true ? null : self;
    while (fence.run(seq, checkpoint, updated, graph, owner, held.key, commit.epoch, self, held.queued).changes === 0)
      passFence(commit, held, self);
  }

  function remember({ ends }: Held, end: End): void {
    if (ends.size === mostEnds && !ends.has(end.name)) for (const oldest of ends.keys()) if (ends.delete(oldest)) break;
    ends.set(end.name, end);
  }

  /** Throws `thread_busy` while a living owner holds a thread; tells whether a dead one does. */
  function refuseHeld(thread: string, state: ThreadState, letGoAt: number | undefined): boolean {
    if (state.owner === null || state.epoch === letGoAt) return false;
    if (owner.isAlive(state.owner)) throw storeRules.busy(thread, owner.describe(state.owner));
    return true;
  }

  /** The row of a thread that nobody alive holds says what it has come to. */
  function settled(thread: string, state: ThreadState): ThreadState {
    if (state.owner === null) return state;
    settle.run(thread);
    return threadState.get(thread) ?? state;
  }

  function branch(write: BranchWrite, letGoAt: number | undefined): CheckpointRow {
    const { thread } = write;
    const found = threadState.get(thread);
    if (found === undefined) throw storeRules.unknownThread(thread);
    refuseHeld(thread, found, letGoAt);
    const state = settled(thread, found);
    const [outer, ...inner] = storeRules.forkedLines(write, {
      origin: (from) => reader.find(thread, from),
      has: (line) => reader.line(thread, line) !== undefined,
    });
    const row = startLine(thread, state, 1, outer, write.interrupts);
    inner.forEach((line, index) => {
      startLine(thread, state, index + 2, line, []);
    });
    if (write.head === true) moveHead.run(write.branch, state.key);
    return row;
  }

  /** Make a line with its first checkpoint, which is the `nth` that its thread gets in this write. */
  function startLine(
    thread: string,
    { key, seq, checkpoint: last }: ThreadState,
    nth: number,
    { line: name, from, origin, checkpoint }: storeRules.ForkedLine<CheckpointColumns>,
    interrupts: readonly InterruptRow[],
  ): CheckpointRow {
    const { graph, version, shape } = origin;
    const writer = { graph, version, shape, key: keyOfGraph(graph, version, shape) };
    const row = { ...checkpoint.row, id: last + nth, branch: name, parent: from, seq: seq + nth };
    const end = newLine(key, name, origin);
    const seals = reader.seals(thread);
    writeCheckpoint({ id: thread, key, writer, run: undefined, seals }, end, { row, deltas: checkpoint.deltas });
    for (const interrupt of interrupts) writeInterrupt(seals, end, interrupt);
    advance.run(row.seq, row.id, row.at, key);
    return row;
  }

  function createThread(id: string, head: string, graph: number, at: number): ThreadState {
    const secret = vault?.secret(id) ?? null;
    const key = Number(addThread.run(id, graph, head, at, at, secret).lastInsertRowid);
    return { key, head, owner: null, epoch: 0, seq: 0, checkpoint: 0, updated: at, queued: 0 };
  }

  /** The end of a line as the file has it, or of the child line that this commit makes. */
  function readEnd(held: Held, commit: Commit): End {
    const line = reader.line(held.id, commit.branch);
    if (line === undefined) return newChildLine(held, commit);
    return endAt(commit.branch, line.key, reader.headOf(held.id, line.key));
  }

  function endAt(name: string, line: number, head: CheckpointColumns | undefined): End {
    return {
      name,
      line,
      head: head === undefined ? undefined : { id: head.id, hash: head.hash },
      step: head?.step,
      journal: lastJournal.get(line) ?? -1,
      channels: new Map(),
    };
  }

  function newChildLine(held: Held, commit: Commit): End {
    const parent = storeRules.parentOfNewLine(commit);
    if (!held.ends.has(parent) && reader.line(held.id, parent) === undefined)
      throw storeRules.unknownBranch(held.id, parent);
    const from = commit.checkpoint?.row.parent;
    return newLine(held.key, commit.branch, from === undefined ? undefined : reader.find(held.id, from));
  }

  /** A line that has nothing of its own yet; its first checkpoint goes on from `origin`. */
  function newLine(thread: number, name: string, origin: CheckpointColumns | undefined): End {
    const line = Number(addLine.run(thread, name, origin?.line ?? null, origin?.id ?? null).lastInsertRowid);
    const head = origin === undefined ? undefined : { id: origin.id, hash: origin.hash };
    return { name, line, head, step: undefined, journal: -1, channels: new Map() };
  }

  /** Write the row of a run; one that is new, or begins after it was queued, is the newest of its line from now on. */
  function putRun(held: Held, { line }: End, run: RunRow): { readonly key: number; readonly begins: boolean } {
    if (held.run?.id === run.id) {
      rewriteRun(held, held.run.key, run);
      return { key: held.run.key, begins: false };
    }
    const known = knownRun.get(held.key, run.id);
    if (known === undefined) {
      checkId("run", run.id);
      if (run.key !== undefined && reader.runOfKey(held.key, run.key) !== undefined) throw storeRules.runExists(run);
      const key = insertRun(held, line, run, held.epoch);
      lead(held, line, key);
      return { key, begins: false };
    }
    const begins = known.status === "queued";
    const wasQueued = known.newest === 0 && reader.run(known.key)?.queuedAt !== undefined;
    if (!begins && wasQueued) throw storeRules.runExists(run);
    rewriteRun(held, known.key, run);
    if (begins) {
      beginRun.run(run.startedAt, known.key);
      sumRun.run(known.key);
      countQueued.run(-1, held.key);
      lead(held, line, known.key);
    }
    return { key: known.key, begins };
  }

  function lead(held: Held, line: number, key: number): void {
    newestRunOfThread.run(key, held.key);
    newestRunOfLine.run(key, line);
  }

  function insertRun(held: Pick<Held, "key" | "seals">, line: number, run: RunRow, epoch: number): number {
    const { id, graph, version, attempt, startedAt, endedAt, key, metadata } = run;
    const { error, input, more } = runPayload(held.seals, run);
    const columns = [
      ...[held.key, line, id, graph, version, storedStatus(run), attempt, startedAt, epoch, endedAt ?? null, error],
      ...[key ?? null, metadata === undefined ? null : JSON.stringify(metadata), input, more],
    ];
    const row = Number(addRun.run(...columns, sumOfColumns(columns)).lastInsertRowid);
    for (const [name, value] of Object.entries(metadata ?? {})) addMetadata.run(row, name, JSON.stringify(value));
    return row;
  }

  function rewriteRun({ epoch, seals }: Held, key: number, run: RunRow): void {
    const { version, attempt, endedAt } = run;
    const ends = { status: storedStatus(run), ended: endedAt ?? null };
    changeRun.run({ key, version, attempt, epoch, ...ends, ...runPayload(seals, run) });
  }

  function enqueue({ thread, branch, run, stops }: QueueWrite): RunRow {
    checkId("run", run.id);
    const state = threadState.get(thread);
    if (state === undefined) throw storeRules.unknownThread(thread);
    const line = reader.line(thread, branch);
    if (line === undefined || storeRules.isChildLine(line.name))
      throw storeRules.unknownBranch(thread, branch ?? state.head);
    const known = run.key === undefined ? undefined : reader.runOfKey(state.key, run.key);
    if (known !== undefined) return known;
    const newest = line.run === null || stops === undefined ? undefined : reader.run(line.run);
    const row: RunRow = {
      ...run,
      thread,
      branch: line.name,
      ...(stops === undefined || newest === undefined ? {} : { stops: { run: newest.id, how: stops } }),
    };
    if (knownRun.get(state.key, run.id) !== undefined) throw storeRules.runExists(row);
    insertRun({ key: state.key, seals: reader.seals(thread) }, line.key, row, 0);
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
    const row = known?.status === "queued" ? reader.run(known.key) : undefined;
    if (state === undefined || known === undefined || row === undefined) return false;
    cancelQueued.run(at, runPayload(reader.seals(thread), { ...row, reason }).more, known.key);
    sumRun.run(known.key);
    countQueued.run(-1, state.key);
    return true;
  }

  function post({ thread, branch, ...letter }: LetterWrite): LetterRow {
    checkId("letter", letter.id);
    const state = threadState.get(thread);
    if (state === undefined) throw storeRules.unknownThread(thread);
    const line = reader.line(thread, branch);
    if (line === undefined || storeRules.isChildLine(line.name))
      throw storeRules.unknownBranch(thread, branch ?? state.head);
    const known = reader.inbox(thread, line.name).find(({ id }) => id === letter.id);
    if (known !== undefined) return known;
    const row: LetterRow = { ...letter, branch: line.name };
    letters.write({ thread, key: line.key, name: line.name, seals: reader.seals(thread) }, row);
    return row;
  }

  /** The run takes letters in, gives back what it took, or has ended and does not need them any more. */
  function moveLetters(held: Held, { name, line }: End, { taken, givenBack, checkpoint, run }: Commit): void {
    const inbox = { thread: held.id, key: line, name, seals: held.seals };
    if (taken !== undefined && checkpoint !== undefined) {
      letters.take(inbox, taken, checkpoint.row.run);
      held.tookLetters = true;
    }
    if (givenBack !== undefined) letters.giveBack(inbox, givenBack);
    if (run?.status === "done" || run?.status === "cancelled") letters.drop(line, run.id);
  }

  /** An effect of the step that this very commit folds is written as it will stand: without its outcome, unless it is once. */
  function writeEffect(seals: Seals | undefined, { line: key, name }: End, effect: EffectRow, folded: boolean): void {
    const kept = folded && effect.effect !== "once" ? { ...effect, outcome: undefined } : effect;
    effectRows.put({ line: { key, name }, seals }, kept);
  }

  function writeCheckpoint(
    held: Pick<Held, "id" | "key" | "writer" | "run" | "seals">,
    end: End,
    { row, deltas: given }: CheckpointWrite,
    effects: readonly EffectRow[] = [],
  ): End {
    if (row.id > largestCheckpoint) throw threadFull(held.id);
    const deltas = given.map((delta) => ({ ...delta, base: storeRules.isBase(delta) }));
    const { seals } = held;
    const placed = row.branch === end.name ? row : { ...row, branch: end.name };
    const hash = checkpointHash(placed, held.writer, deltas, end.head?.hash, seals);
    const run = held.run?.id === row.run ? held.run.key : (runKey.get(held.key, row.run) ?? row.run);
    const at = { thread: held.id, line: end.name, checkpoint: row.id };
    const folded: FoldedColumns = end.step === undefined ? nothingFolded : foldedColumns(at, end.step, effects);
    addCheckpoint.run(
      keyAt(end.line, row.id),
      row.step,
      row.parent ?? null,
      row.source,
      JSON.stringify(row.nodes),
      typeof run === "number" ? BigInt(run) : run,
      row.at,
      row.durationMs,
      row.seq,
      row.bytes,
      held.writer.key,
      hash,
      folded.effects,
      folded.effects_sum,
      seals === undefined ? row.control : seals.seal(row.control, controlPlace(end.name, row.id)),
    );
    if (storeRules.isChildLine(end.name)) addChildCheckpoint.run(keyAt(held.key, row.id), end.line);
    for (const delta of deltas) {
      const { sum, text } = deltaColumns(seals, at, delta);
      addDelta.run(keyAt(keyOfChannel(end, delta.channel), row.id), delta.kind, delta.base ? 1 : 0, sum, text);
    }
    return { ...end, head: { id: row.id, hash }, step: row.step };
  }

  function writeInterrupt(seals: Seals | undefined, end: End, interrupt: InterruptRow): void {
    const { id, step, task, node, key, schema, raisedAt, expiresAt, answeredAt, expiredAt } = interrupt;
    const { sum, payload, answer, more } = questionPayload(seals, end.name, interrupt);
    putInterrupt.run(
      end.line,
      wellFormed(id),
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

  function writeFact({ key, seals }: Pick<Held, "key" | "seals">, line: number, fact: EventRow): void {
    const { sum, text } = factColumns(seals, fact);
    addFact.run(key, fact.seq, line, fact.at, sum, text);
  }

  /** Remove a thread that nobody alive holds. */
  function remove(thread: string, letGoAt: number | undefined): void {
    const state = threadState.get(thread);
    if (state === undefined) throw storeRules.unknownThread(thread);
    refuseHeld(thread, state, letGoAt);
    eraser.thread(state.key);
  }

  /** Take a thread in as its image has it. */
  function insert(image: ThreadImage): void {
    if (threadState.get(image.id) !== undefined) throw storeRules.threadExists(image.id);
    const { graph, version, shape } = image.writtenBy;
    const { key } = createThread(image.id, image.headBranch, keyOfGraph(graph, version, shape), image.createdAt);
    const seals = reader.seals(image.id);
    const ends = insertLines(key, image);
    const runs = new Map<string, number>();
    for (const run of image.runs) {
      const line = ends.get(run.branch);
      if (line !== undefined) runs.set(run.id, insertRun({ key, seals }, line.line, { ...run, thread: image.id }, 0));
    }
    const written = { id: image.id, key, run: undefined, seals };
    for (const line of image.lines) {
      const end = ends.get(line.name);
      if (end === undefined) continue;
      for (const effect of line.effects) writeEffect(seals, end, effect, false);
      for (const interrupt of line.interrupts) writeInterrupt(seals, end, interrupt);
      awaitNothing.run(end.line);
      for (const id of line.awaited) awaitAgain.run(end.line, id);
      for (const timer of line.timers) changeTimer(end.line, { arm: timer });
      for (const letter of line.letters)
        letters.write({ thread: image.id, key: end.line, name: line.name, seals }, letter);
      const run = line.run === undefined ? undefined : runs.get(line.run);
      if (run !== undefined) newestRunOfLine.run(run, end.line);
    }
    insertCheckpoints(written, image, ends);
    for (const { row, body } of image.artifacts) artifacts.put(written, { row, body });
    for (const event of image.events) {
      const line = ends.get(event.branch);
      if (line !== undefined) writeFact(written, line.line, event);
    }
    const run = image.run === undefined ? undefined : runs.get(image.run);
    if (run !== undefined) newestRunOfThread.run(run, key);
    countQueued.run(image.runs.filter(({ status }) => status === "queued").length, key);
    advance.run(image.seq, image.checkpoint, image.updatedAt, key);
  }

  function insertLines(thread: number, image: ThreadImage): Map<string, End> {
    const ends = new Map<string, End>();
    const lineOf = new Map(
      image.lines.flatMap(({ name, checkpoints }) => checkpoints.map(({ row }) => [row.id, name])),
    );
    for (const { name, from } of image.lines) {
      const origin = from === undefined ? undefined : ends.get(lineOf.get(from) ?? "");
      const line = Number(addLine.run(thread, name, origin?.line ?? null, from ?? null).lastInsertRowid);
      ends.set(name, { name, line, head: undefined, step: undefined, journal: -1, channels: new Map() });
    }
    return ends;
  }

  /** Checkpoints of all lines in the order of their ids: each goes on from one that is there, or from a cut. */
  function insertCheckpoints(
    thread: Pick<Held, "id" | "key" | "run" | "seals">,
    image: ThreadImage,
    ends: ReadonlyMap<string, End>,
  ): void {
    const hashes = new Map<number, string>();
    for (const { name, cuts: cutsOfLine } of image.lines) {
      const end = ends.get(name);
      if (end === undefined) continue;
      const at = { thread: thread.id, line: { key: end.line, name }, seals: thread.seals };
      let after = 0;
      for (const cut of cutsOfLine) {
        // Nobody knows any more what stood here: the chain begins with what is left of it.
        const hash = keptHash(thread.seals, name, cut.deltas);
        cuts.put(at, after, cut, { hash, before: [] });
        hashes.set(cut.id, hash);
        after = cut.id;
      }
    }
    const all = image.lines.flatMap(({ name, checkpoints }) => checkpoints.map((checkpoint) => ({ name, checkpoint })));
    for (const { name, checkpoint } of all.sort((one, other) => one.checkpoint.row.id - other.checkpoint.row.id)) {
      const { row, deltas, writtenBy } = checkpoint;
      const { graph, version, shape } = writtenBy;
      const end = ends.get(name);
      if (end === undefined) continue;
      const hash = row.parent === undefined ? undefined : hashes.get(row.parent);
      const head = row.parent === undefined || hash === undefined ? undefined : { id: row.parent, hash };
      const writer = { graph, version, shape, key: keyOfGraph(graph, version, shape) };
      const written = writeCheckpoint({ ...thread, writer }, { ...end, head }, { row, deltas });
      hashes.set(row.id, written.head?.hash ?? "");
    }
  }

  function changeTimer(line: number, change: TimerChange): void {
    if ("drop" in change) {
      dropTimer.run(line, change.drop.id, change.drop.generation);
      return;
    }
    const { id, kind, generation, dueAt, about } = change.arm;
    putTimer.run(line, wellFormed(id), kind, generation, dueAt, wellFormed(about), timerSum(change.arm));
  }

  function keyOfGraph(name: string, version: number, shape: string): number {
    return graphKey.get(name, version, shape) ?? Number(addGraph.run(name, version, shape).lastInsertRowid);
  }

  function keyOfChannel({ line, channels }: End, name: string): number {
    const known =
      channels.get(name) ??
      channelKey.get(line, name) ??
      Number(addChannel.run(line, wellFormed(name)).lastInsertRowid);
    channels.set(name, known);
    return known;
  }

  return {
    claim,
    defer,
    commit,
    branch,
    enqueue,
    dequeue,
    post,
    remove,
    insert,
    prune: retain,
    release: (held) => {
      const self = owner.id();
      if (self !== undefined) letGo.run(held.key, held.epoch, self);
    },
  };
}

/** The result of a task is of no use once its step is folded: where none is in the file, none is written. */
function isFoldedTask({ step, kind, effect }: EffectRow, journal: number): boolean {
  return kind === "task" && effect !== "once" && journal < step;
}

const nothingReached: Reached = { seq: 0, checkpoint: 0, updated: 0 };

/** What a thread has come to with a commit. */
function reachedBy(commit: Commit, { seq, checkpoint, updated }: Reached): Reached {
  return {
    seq: Math.max(seq, commit.seq),
    checkpoint: Math.max(checkpoint, commit.checkpoint?.row.id ?? 0),
    updated: Math.max(updated, storeRules.changeTime(commit)),
  };
}

/**
 * Whether the row of a thread would say nothing of a commit that its checkpoint does not say: a superstep, or journal rows alone.
 * Lists look for the checkpoints of threads with a run at work, and of no others.
 */
function leavesRow(
  { checkpoint, run, events, release }: Commit,
  { named, run: atWork }: Held,
  before: Reached,
  reached: Reached,
): boolean {
  if (run !== undefined || release === true || (events !== undefined && events.length > 0)) return false;
  if (checkpoint === undefined) return reached.seq === before.seq && reached.updated === before.updated;
  const { id, seq, at } = checkpoint.row;
  return named && atWork !== undefined && id === reached.checkpoint && seq === reached.seq && at === reached.updated;
}

function threadFull(thread: string): StatewrightError {
  return new StatewrightError("store_full", {
    what: `the thread "${thread}" has as many checkpoints as a thread can have (${largestCheckpoint})`,
    next: "Go on in a new thread",
    place: { thread },
  });
}
