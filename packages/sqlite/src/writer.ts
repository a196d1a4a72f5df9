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
  type TimerChange,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { Owner } from "./owner.ts";
import type { Reader } from "./reader.ts";
import {
  type CheckpointColumns,
  checkpointHash,
  checkpointRow,
  deltaSum,
  effectSum,
  interruptSum,
  timerSum,
  type WrittenBy,
} from "./rows.ts";
import { keyAt, largestCheckpoint } from "./schema.ts";

/** A thread that this store owns, and what it knows of it without asking the file again. */
export interface Held {
  readonly id: string;
  readonly key: number;
  readonly epoch: number;
  readonly writer: WrittenBy & { readonly key: number };
  /** The ends of the lines that were written, by name; what is not there must be read again. */
  readonly ends: Map<string, End>;
  /** The newest checkpoint of the thread on any line; absent when it must be read again. */
  last: number | undefined;
  /** The run that was written last. */
  run: RunKey | undefined;
  /** Its run has let it go, which could not be written. */
  letGo: boolean;
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
  held.last = undefined;
  held.run = undefined;
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
  const addChildCheckpoint = db.prepare<[number, number]>("INSERT INTO child_checkpoints (key, branch) VALUES (?, ?)");
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

  const putTimer = db.prepare(
    "INSERT INTO timers (branch, id, kind, generation, due, about, sum) VALUES (?, ?, ?, ?, ?, ?, ?)" +
      " ON CONFLICT (branch, id) DO UPDATE SET kind = excluded.kind, generation = excluded.generation, due = excluded.due," +
      " about = excluded.about, sum = excluded.sum WHERE excluded.generation >= timers.generation",
  );
  const dropTimer = db.prepare<[number, string, number]>(
    "DELETE FROM timers WHERE branch = ? AND id = ? AND generation <= ?",
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
    return {
      held: {
        id: thread,
        key: state.key,
        epoch,
        writer,
        ends: new Map([[branch, endAt(branch, lineKey, head)]]),
        last: state.checkpoint,
        run: run === undefined ? undefined : { id: run.id, key: line?.run as number },
        letGo: false,
      },
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
    const { run, checkpoint, effects, interrupts, timers } = commit;
    const self = owner.id();
    if (held === undefined || self === undefined || held.epoch !== commit.epoch) throw storeRules.fenced(commit);
    const last = held.last ?? lastCheckpoint.get(held.key) ?? 0;
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
    let end = held.ends.get(commit.branch) ?? readEnd(held, commit);
    if (run !== undefined) held.run = { id: run.id, key: putRun(held, end, run) };
    const folded = checkpoint === undefined ? undefined : end.step;
    let journal = end.journal;
    for (const effect of effects ?? []) {
      if (effect.step === folded && effect.kind === "task" && journal < folded) continue;
      writeEffect(end.line, effect, effect.step === folded);
      if (effect.step !== folded && effect.step > journal) journal = effect.step;
    }
    if (journal > end.journal) end = { ...end, journal };
    if (checkpoint !== undefined) {
      storeRules.checkFollows(checkpoint, end.head?.id, last, commit);
      if (folded !== undefined && journal >= folded) {
        dropTasks.run(end.line, folded);
        dropOutcomes.run(end.line, folded);
      }
      end = writeCheckpoint(held, end, checkpoint);
    }
    for (const interrupt of interrupts ?? []) writeInterrupt(end.line, interrupt);
    for (const change of timers ?? []) changeTimer(end.line, change);
    held.last = checkpoint?.row.id ?? last;
    remember(held, end);
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

  function branch(write: BranchWrite, letGoAt: number | undefined): CheckpointRow {
    const { thread } = write;
    const state = threadState.get(thread);
    if (state === undefined) throw storeRules.unknownThread(thread);
    refuseHeld(thread, state, letGoAt);
    const [outer, ...inner] = storeRules.forkedLines(write, {
      origin: (from) => reader.find(thread, from),
      has: (line) => reader.line(thread, line) !== undefined,
    });
    const row = startLine(thread, state, 1, outer, write.interrupts);
    inner.forEach((line, index) => {
      startLine(thread, state, index + 2, line, []);
    });
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
    writeCheckpoint({ id: thread, key, writer, run: undefined }, end, { row, deltas: checkpoint.deltas });
    for (const interrupt of interrupts) writeInterrupt(end.line, interrupt);
    advance.run(row.seq, row.id, row.at, key);
    return row;
  }

  function createThread(id: string, head: string, graph: number, at: number): ThreadState {
    const key = Number(addThread.run(id, graph, head, at, at).lastInsertRowid);
    return { key, head, owner: null, epoch: 0, seq: 0, checkpoint: 0 };
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

  function putRun(held: Held, end: End, run: RunRow): number {
    const known = held.run?.id === run.id ? held.run.key : runKey.get(held.key, run.id);
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

  function writeCheckpoint(
    held: Pick<Held, "id" | "key" | "writer" | "run">,
    end: End,
    { row, deltas: given }: CheckpointWrite,
  ): End {
    if (row.id > largestCheckpoint) throw threadFull(held.id);
    const deltas = given.map((delta) => ({ ...delta, base: storeRules.isBase(delta) }));
    const hash = checkpointHash(row, held.writer, deltas, end.head?.hash);
    const run = held.run?.id === row.run ? held.run.key : (runKey.get(held.key, row.run) ?? row.run);
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
    if (storeRules.isChildLine(end.name)) addChildCheckpoint.run(keyAt(held.key, row.id), end.line);
    for (const delta of deltas) {
      addDelta.run(
        keyAt(keyOfChannel(end, delta.channel), row.id),
        delta.kind,
        delta.base ? 1 : 0,
        deltaSum(delta),
        delta.text,
      );
    }
    return { ...end, head: { id: row.id, hash }, step: row.step };
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
