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
  type InterruptRow,
  type RunRow,
  StatewrightError,
  storeRules,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { Owner } from "./owner.ts";
import type { Reader } from "./reader.ts";
import { checkpointHash, checkpointRow, deltaSum, effectSum, interruptSum, type WrittenBy } from "./rows.ts";
import { keyAt, largestCheckpoint } from "./schema.ts";

/** A thread that this store owns, and what it knows of it without asking the file again. */
export interface Held {
  readonly id: string;
  readonly key: number;
  readonly epoch: number;
  readonly writer: WrittenBy & { readonly key: number };
  /** The end of the branch that is written; absent when it must be read again. */
  end: End | undefined;
  /** Its run has let it go, which could not be written. */
  letGo: boolean;
}

interface End {
  readonly branch: string;
  readonly line: number;
  readonly head: { readonly id: number; readonly step: number; readonly hash: string } | undefined;
  /** The newest checkpoint of the thread on any branch. */
  readonly last: number;
  /** The last step of the branch that has journal rows in the file; -1 when none has. */
  readonly journal: number;
  readonly run: { readonly id: string; readonly key: number } | undefined;
  /** Keys of the branch's channels, as far as they were needed. */
  readonly channels: Map<string, number>;
}

export interface Writer {
  /** Take a thread that nobody alive holds; one that is held under the epoch `letGoAt` counts as let go. */
  claim(request: ClaimRequest, letGoAt: number | undefined): { readonly claim: Claim; readonly held: Held };
  commit(commit: Commit, held: Held | undefined): void;
  branch(write: BranchWrite, letGoAt: number | undefined): CheckpointRow;
  /** Let a thread go, inside the last transaction. */
  release(held: Held): void;
}

interface ThreadState {
  readonly key: number;
  readonly head: string;
  readonly owner: number | null;
  readonly epoch: number;
  readonly seq: number;
  readonly checkpoint: number;
}

export function createWriter(db: Database, owner: Owner, reader: Reader): Writer {
  const threadState = db.prepare<[string], ThreadState>(
    "SELECT key, head, owner, epoch, seq, checkpoint FROM threads WHERE id = ?",
  );
  const addThread = db.prepare<[string, number, string, number, number]>(
    "INSERT INTO threads (id, graph, head, epoch, seq, checkpoint, created, updated) VALUES (?, ?, ?, 0, 0, 0, ?, ?)",
  );
  const addLine = db.prepare<[number, string, number | null, number | null]>(
    "INSERT INTO branches (thread, name, parent, origin) VALUES (?, ?, ?, ?)",
  );
  const take = db
    .prepare<[number, number], number>("UPDATE threads SET owner = ?, epoch = epoch + 1 WHERE key = ? RETURNING epoch")
    .pluck();
  const advance = db.prepare<[number, number, number, number]>(
    "UPDATE threads SET seq = ?, checkpoint = ?, updated = max(updated, ?) WHERE key = ?",
  );
  const letGo = db.prepare<[number, number, number]>(
    "UPDATE threads SET owner = NULL WHERE key = ? AND epoch = ? AND owner = ?",
  );
  const fence = db.prepare<[number, number, number, number | null, number | null, number, number, number]>(
    "UPDATE threads SET seq = max(seq, ?), checkpoint = max(checkpoint, ?), updated = max(updated, ?), graph = coalesce(?, graph), owner = ?" +
      " WHERE key = ? AND epoch = ? AND owner = ?",
  );
  const lastCheckpoint = db.prepare<[number], number>("SELECT checkpoint FROM threads WHERE key = ?").pluck();

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
    "INSERT INTO runs (thread, branch, id, graph, version, status, attempt, started, ended, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const changeRun = db.prepare(
    "UPDATE runs SET branch = ?, graph = ?, version = ?, status = ?, attempt = ?, started = ?, ended = ?, error = ? WHERE key = ?",
  );
  const newestRunOfThread = db.prepare<[number, number]>("UPDATE threads SET run = ? WHERE key = ?");
  const newestRunOfLine = db.prepare<[number, number]>("UPDATE branches SET run = ? WHERE key = ?");

  const addCheckpoint = db.prepare(
    "INSERT INTO checkpoints (key, step, parent, source, nodes, run, at, duration, seq, bytes, graph, hash, control)" +
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
  );
  const addDelta = db.prepare("INSERT INTO deltas (key, kind, base, sum, text) VALUES (?, ?, ?, ?, ?)");
  const putEffect = db.prepare(
    "INSERT INTO effects (branch, step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, sum, outcome)" +
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" +
      " ON CONFLICT (branch, step, task, call) DO UPDATE SET kind = excluded.kind, name = excluded.name, effect = excluded.effect," +
      " state = excluded.state, attempts = excluded.attempts, idempotency = excluded.idempotency, started = excluded.started," +
      " ended = excluded.ended, stage = excluded.stage, sum = excluded.sum, outcome = excluded.outcome",
  );
  const dropTasks = db.prepare<[number, number]>("DELETE FROM effects WHERE branch = ? AND step = ? AND kind = 'task'");
  const dropOutcomes = db.prepare<[number, number]>(
    "UPDATE effects SET outcome = NULL, sum = NULL WHERE branch = ? AND step = ? AND effect <> 'once'",
  );
  const lastJournal = db.prepare<[number], number | null>("SELECT max(step) FROM effects WHERE branch = ?").pluck();
  const putInterrupt = db.prepare(
    "INSERT INTO interrupts (branch, id, step, task, node, name, payload, schema, raised, answer, answered, sum)" +
      " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)" +
      " ON CONFLICT (branch, id) DO UPDATE SET step = excluded.step, task = excluded.task, node = excluded.node, name = excluded.name," +
      " payload = excluded.payload, schema = excluded.schema, raised = excluded.raised, answer = excluded.answer," +
      " answered = excluded.answered, sum = excluded.sum",
  );

  function claim(request: ClaimRequest, letGoAt: number | undefined): { readonly claim: Claim; readonly held: Held } {
    const { thread, graph, version, shape, at } = request;
    const known = threadState.get(thread);
    if (known === undefined && request.mustExist === true) throw storeRules.unknownThread(thread);
    const recovered = known !== undefined && refuseHeld(thread, known, letGoAt);
    const writer = { key: keyOfGraph(graph, version, shape), graph, version, shape };
    const state = known ?? createThread(thread, request.branch ?? "main", writer.key, at);
    const branch = request.branch ?? state.head;
    const line = reader.line(thread, branch);
    if (line === undefined && known !== undefined && request.mustExist === true)
      throw storeRules.unknownBranch(thread, branch);
    const lineKey = line?.key ?? Number(addLine.run(state.key, branch, null, null).lastInsertRowid);
    const epoch = take.get(owner.id() ?? owner.register(at), state.key) as number;
    const head = reader.headOf(thread, lineKey);
    const run = line === undefined || line.run === null ? undefined : reader.run(line.run);
    const end: End = {
      branch,
      line: lineKey,
      head: head === undefined ? undefined : { id: head.id, step: head.step, hash: head.hash },
      last: state.checkpoint,
      journal: lastJournal.get(lineKey) ?? -1,
      run: run === undefined ? undefined : { id: run.id, key: line?.run as number },
      channels: new Map(),
    };
    return {
      held: { id: thread, key: state.key, epoch, writer, end, letGo: false },
      claim: {
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
      },
    };
  }

  function commit(commit: Commit, held: Held | undefined): void {
    const { run, checkpoint, effects, interrupts } = commit;
    const self = owner.id();
    if (held === undefined || self === undefined || held.epoch !== commit.epoch) throw storeRules.fenced(commit);
    let end = held.end?.branch === commit.branch ? held.end : readEnd(held, commit);
    const { changes } = fence.run(
      commit.seq,
      checkpoint?.row.id ?? 0,
      storeRules.latestTime(commit),
      checkpoint === undefined ? null : held.writer.key,
      commit.release === true ? null : self,
      held.key,
      commit.epoch,
      self,
    );
    if (changes === 0) throw storeRules.fenced(commit);
    if (run !== undefined) end = { ...end, run: { id: run.id, key: putRun(held, end, run) } };
    const folded = checkpoint === undefined ? undefined : end.head?.step;
    let journal = end.journal;
    for (const effect of effects ?? []) {
      if (effect.step === folded && effect.kind === "task" && journal < folded) continue;
      writeEffect(end.line, effect, effect.step === folded);
      if (effect.step !== folded && effect.step > journal) journal = effect.step;
    }
    if (journal > end.journal) end = { ...end, journal };
    if (checkpoint !== undefined) {
      storeRules.checkFollows(checkpoint, end.head, end.last, commit);
      if (folded !== undefined && journal >= folded) {
        dropTasks.run(end.line, folded);
        dropOutcomes.run(end.line, folded);
      }
      end = writeCheckpoint(held, end, checkpoint);
    }
    for (const interrupt of interrupts ?? []) writeInterrupt(end.line, interrupt);
    held.end = end;
  }

  /** Throws `thread_busy` while a living owner holds a thread; tells whether a dead one does. */
  function refuseHeld(thread: string, state: ThreadState, letGoAt: number | undefined): boolean {
    if (state.owner === null || state.epoch === letGoAt) return false;
    if (owner.isAlive(state.owner)) throw storeRules.busy(thread, owner.describe(state.owner));
    return true;
  }

  function branch(write: BranchWrite, letGoAt: number | undefined): CheckpointRow {
    const { thread, from } = write;
    const state = threadState.get(thread);
    if (state === undefined) throw storeRules.unknownThread(thread);
    refuseHeld(thread, state, letGoAt);
    const origin = reader.find(thread, from);
    if (origin === undefined) throw storeRules.unknownCheckpoint(thread, from);
    if (reader.line(thread, write.branch) !== undefined) throw storeRules.branchExists(thread, write.branch);
    const line = Number(addLine.run(state.key, write.branch, origin.line, from).lastInsertRowid);
    const row = {
      ...write.checkpoint.row,
      id: state.checkpoint + 1,
      branch: write.branch,
      parent: from,
      seq: state.seq + 1,
    };
    const writer = { graph: origin.graph, version: origin.version, shape: origin.shape };
    const held = {
      id: thread,
      key: state.key,
      epoch: state.epoch,
      writer: { ...writer, key: keyOfGraph(writer.graph, writer.version, writer.shape) },
      end: undefined,
      letGo: true,
    };
    const end = {
      branch: write.branch,
      line,
      head: { id: from, step: origin.step, hash: origin.hash },
      last: state.checkpoint,
      journal: -1,
      run: undefined,
      channels: new Map(),
    };
    writeCheckpoint(held, end, { row, deltas: write.checkpoint.deltas });
    for (const interrupt of write.interrupts) writeInterrupt(line, interrupt);
    advance.run(row.seq, row.id, row.at, state.key);
    return row;
  }

  function createThread(id: string, head: string, graph: number, at: number): ThreadState {
    const key = Number(addThread.run(id, graph, head, at, at).lastInsertRowid);
    return { key, head, owner: null, epoch: 0, seq: 0, checkpoint: 0 };
  }

  function readEnd(held: Held, { thread, branch: name }: Commit): End {
    const line = reader.line(thread, name);
    if (line === undefined) throw storeRules.unknownBranch(thread, name);
    return {
      branch: name,
      line: line.key,
      head: reader.headOf(thread, line.key),
      last: lastCheckpoint.get(held.key) ?? 0,
      journal: lastJournal.get(line.key) ?? -1,
      run: undefined,
      channels: new Map(),
    };
  }

  function putRun(held: Held, end: End, run: RunRow): number {
    const known = end.run?.id === run.id ? end.run.key : runKey.get(held.key, run.id);
    const error = run.error === undefined ? null : JSON.stringify(run.error);
    if (known !== undefined) {
      changeRun.run(
        end.line,
        run.graph,
        run.version,
        run.status,
        run.attempt,
        run.startedAt,
        run.endedAt ?? null,
        error,
        known,
      );
      return known;
    }
    checkId("run", run.id);
    const added = addRun.run(
      held.key,
      end.line,
      run.id,
      run.graph,
      run.version,
      run.status,
      run.attempt,
      run.startedAt,
      run.endedAt ?? null,
      error,
    );
    const key = Number(added.lastInsertRowid);
    newestRunOfThread.run(key, held.key);
    newestRunOfLine.run(key, end.line);
    return key;
  }

  /** An effect of the step that this very commit folds is written as it will stand: without its outcome, unless it is once. */
  function writeEffect(line: number, effect: EffectRow, folded: boolean): void {
    const { step, task, key, kind, name, state, attempts, idempotencyKey, startedAt, endedAt, outcome, stage } = effect;
    const kept = !folded || effect.effect === "once";
    putEffect.run(
      line,
      step,
      wellFormed(task),
      wellFormed(key),
      kind,
      name,
      effect.effect,
      state,
      attempts,
      idempotencyKey,
      startedAt,
      endedAt ?? null,
      stage ?? null,
      kept ? effectSum(effect) : null,
      kept ? (outcome ?? null) : null,
    );
  }

  function writeCheckpoint(held: Held, end: End, { row, deltas: given }: CheckpointWrite): End {
    if (row.id > largestCheckpoint) throw threadFull(held.id);
    const deltas = given.map((delta) => ({ ...delta, base: storeRules.isBase(delta) }));
    const hash = checkpointHash(row, held.writer, deltas, end.head?.hash);
    const run = end.run?.id === row.run ? end.run.key : (runKey.get(held.key, row.run) ?? row.run);
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
      row.control,
    );
    for (const delta of deltas) {
      addDelta.run(
        keyAt(keyOfChannel(end, delta.channel), row.id),
        delta.kind,
        delta.base ? 1 : 0,
        deltaSum(delta),
        delta.text,
      );
    }
    return { ...end, head: { id: row.id, step: row.step, hash }, last: row.id };
  }

  function writeInterrupt(line: number, interrupt: InterruptRow): void {
    const { id, step, task, node, key, payload, schema, raisedAt, answer, answeredAt } = interrupt;
    putInterrupt.run(
      line,
      wellFormed(id),
      step,
      task,
      node,
      key,
      payload,
      schema === undefined ? null : JSON.stringify(schema),
      raisedAt,
      answer ?? null,
      answeredAt ?? null,
      interruptSum(interrupt),
    );
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
    commit,
    branch,
    release: (held) => {
      const self = owner.id();
      if (self !== undefined) letGo.run(held.key, held.epoch, self);
    },
  };
}

function threadFull(thread: string): StatewrightError {
  return new StatewrightError("store_full", {
    what: `the thread "${thread}" has as many checkpoints as a thread can have (${largestCheckpoint})`,
    next: "Go on in a new thread",
    place: { thread },
  });
}

const loneSurrogate = /\p{Surrogate}/u;

/** SQLite keeps text as UTF-8, in which two different halves of a surrogate pair become the same bytes (rule R4). */
function wellFormed(name: string): string {
  if (!loneSurrogate.test(name)) return name;
  throw new StatewrightError("invalid_id", {
    what: `${JSON.stringify(name)} is not well-formed text`,
    next: "Leave lone surrogates out of names and keys",
  });
}
