/** Reading: what is read is checked against its sums, and no more is read than the answer needs. */

import {
  type ChannelRows,
  type CheckpointImage,
  type CheckpointRow,
  type CheckpointWithDeltas,
  type DeltaRow,
  type EffectRow,
  type EventRow,
  type InterruptRow,
  type LetterRow,
  type QuestionFilter,
  type QuestionRow,
  type StatewrightError,
  type StoredEvent,
  storeRules,
  type TimerRow,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import { opened, type Payload, type Seals, type Vault } from "../encryption/cipher.ts";
import {
  controlPlace,
  readDelta,
  readEffect,
  readFact,
  readLetter,
  readQuestion,
} from "../encryption/encrypted-rows.ts";
import { keyAt, largestCheckpoint } from "../file/schema.ts";
import { corrupt } from "../file/store-errors.ts";
import { type FoldedColumns, readFolded } from "../rows/folded-effects.ts";
import { readableRows } from "../rows/readable-rows.ts";
import {
  type CheckpointColumns,
  checkpointHash,
  checkpointRow,
  type DeltaColumns,
  type EffectColumns,
  type FactColumns,
  type InterruptColumns,
  interruptRow,
  type LetterColumns,
  type QuestionColumns,
  questionRow,
  type TimerColumns,
  timerRow,
  timerSum,
  type WrittenBy,
} from "../rows/rows.ts";
import { createLists, type Lists } from "./lists.ts";
import { reachedCheckpoint } from "./thread-head.ts";

/** A branch or a child line as its rows name it, and where it came from. */
export interface Line {
  readonly key: number;
  readonly name: string;
  readonly parent: number | null;
  readonly origin: number | null;
  readonly run: number | null;
}

export interface Reader extends Lists {
  /** What the values of a thread are sealed with; absent in a store without encryption, and for a thread that is not there. */
  seals(thread: string): Seals | undefined;
  /** The sealed secret of a thread; null where it has none. */
  secret(thread: string): Payload | null | undefined;
  /** Ask for keys again: what was said before may be old. */
  forgetSeals(): void;
  branches(
    thread: string,
  ): readonly { readonly name: string; readonly from: number | undefined; readonly head: number | undefined }[];
  checkpoint(thread: string, id: number): CheckpointRow | undefined;
  writtenBy(thread: string, id: number): WrittenBy | undefined;
  head(thread: string, branch?: string): CheckpointRow | undefined;
  /** The newest checkpoint of a line as it stands, checked. */
  headOf(thread: string, line: number): CheckpointColumns | undefined;
  /** A checkpoint of any line of a thread as it stands, checked. */
  find(thread: string, id: number): CheckpointColumns | undefined;
  line(thread: string, branch?: string): Line | undefined;
  /** All lines of a thread, child lines too, in the order in which they were made. */
  lines(thread: string): readonly Line[];
  /** Checkpoints of a line alone, oldest first, from the one after `after` on, checked. */
  own(thread: string, line: Line, after: number, limit: number): readonly CheckpointImage[];
  /** Ids of the checkpoints of a line alone, oldest first. */
  ids(line: Line): readonly number[];
  /** Ids of the checkpoints of a line and of those it goes on from, newest first. */
  idsBack(line: Line): Iterable<number>;
  /** Questions of a line that its run waits for. */
  awaited(line: Line): readonly string[];
  /** Durable events of a thread that no checkpoint tells. */
  facts(thread: string): readonly EventRow[];
  history(
    thread: string,
    page: { readonly branch?: string | undefined; readonly before?: number | undefined; readonly limit: number },
  ): readonly CheckpointWithDeltas[];
  state(thread: string, checkpoint: number): readonly ChannelRows[];
  effects(thread: string, branch: string, step?: number): readonly EffectRow[];
  interrupts(thread: string, branch: string): readonly InterruptRow[];
  questions(filter: QuestionFilter): readonly QuestionRow[];
  /** Whether any letter waits, for whatever branch: asked often, and mostly none does. */
  hasLetters(): boolean;
  /** The letters that wait for a branch, in the order in which they were posted. */
  inbox(thread: string, branch: string): readonly LetterRow[];
  /** The letters of a branch, those too that a run has taken in which may yet give them back. */
  letters(thread: string, branch: string): readonly LetterRow[];
  events(
    thread: string,
    page: { readonly after: number; readonly from?: number | undefined; readonly limit: number },
  ): readonly StoredEvent[];
  timers(filter: { readonly thread?: string; readonly dueBy?: number; readonly limit?: number }): readonly TimerRow[];
}

/** `run` is a key where the run has a row, and its id as text where it has none. */
const checkpointColumns =
  "SELECT c.key >> 24 AS line, c.key & 0xffffff AS id, b.name AS branch, c.step, c.parent, c.source, c.nodes, c.control," +
  " CASE typeof(c.run) WHEN 'integer' THEN (SELECT r.id FROM runs r WHERE r.key = c.run) ELSE c.run END AS run," +
  " c.at, c.duration, c.seq, c.bytes, c.hash, g.name AS graph, g.version, g.shape," +
  " coalesce((SELECT p.hash FROM checkpoints p WHERE p.key = (CASE WHEN c.parent = b.origin THEN b.parent ELSE b.key END << 24) + c.parent)," +
  " (SELECT a.hash FROM anchors a WHERE a.key = (b.key << 24) + c.parent)) AS parentHash" +
  " FROM checkpoints c JOIN branches b ON b.key = c.key >> 24 JOIN graphs g ON g.key = c.graph";

const effectColumns =
  "SELECT step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, sum, outcome FROM effects";

const questionColumns =
  "SELECT i.key AS place, t.id AS thread, b.name AS branch, r.id AS run, r.graph, i.id, i.step, i.task, i.node, i.name, i.payload," +
  " i.schema, i.raised, i.expires, i.answer, i.answered, i.more, i.sum FROM ";

const questionsWanted =
  " AND i.awaited = 1 AND i.key < @before AND (@graph IS NULL OR r.graph = @graph) AND (@name IS NULL OR i.name = @name)" +
  " AND (i.expires IS NULL OR i.expires > @at) ORDER BY i.key DESC LIMIT @limit";

/** Read in the order of the index of those that are waited for, and no further than the limit. */
const questionList =
  questionColumns +
  "interrupts i INDEXED BY questions CROSS JOIN branches b ON b.key = i.branch CROSS JOIN threads t ON t.key = b.thread" +
  " CROSS JOIN runs r ON r.key = b.run WHERE r.status = 'waiting'" +
  questionsWanted;

const questionListOfThread =
  questionColumns +
  "threads t CROSS JOIN branches b INDEXED BY branches_of_thread ON b.thread = t.key AND instr(b.name, '/') = 0" +
  " CROSS JOIN runs r ON r.key = b.run CROSS JOIN interrupts i INDEXED BY questions_of_branch ON i.branch = b.key" +
  " WHERE t.id = @thread AND r.status = 'waiting'" +
  questionsWanted;

const letterList =
  "SELECT l.id, l.kind, l.at, l.taken, l.sum, l.messages FROM threads t CROSS JOIN branches b ON b.thread = t.key AND b.name = ?" +
  " CROSS JOIN letters l ON l.branch = b.key WHERE t.id = ?";

interface QuestionParameters {
  readonly graph: string | null;
  readonly name: string | null;
  readonly at: number;
  readonly before: number;
  readonly limit: number;
}

const timerColumns = "SELECT t.id AS thread, b.name AS branch, m.id, m.kind, m.generation, m.due, m.about, m.sum FROM ";

/** What is due is read in the order of its index, and no further than the limit. */
const timerList =
  timerColumns +
  "timers m CROSS JOIN branches b ON b.key = m.branch CROSS JOIN threads t ON t.key = b.thread" +
  " WHERE m.due <= ? ORDER BY m.due, m.id, t.id, b.name LIMIT ?";

const timerListOfThread =
  timerColumns +
  "threads t CROSS JOIN branches b ON b.thread = t.key CROSS JOIN timers m ON m.branch = b.key" +
  " WHERE t.id = ? AND m.due <= ? ORDER BY m.due, m.id, b.name LIMIT ?";

/** `told` hears of rows that lists of many threads leave out, because they are not what was written. */
export function createReader(
  db: Database,
  vault?: Vault,
  told: (fault: StatewrightError) => void = () => undefined,
): Reader {
  const secretOf = db.prepare<[string], Payload | null>("SELECT secret FROM threads WHERE id = ?").pluck();
  let current: { readonly thread: string; readonly seals: Seals | undefined } | undefined;

  const lineByName = db.prepare<[string, string | null], Line>(
    "SELECT b.key, b.name, b.parent, b.origin, b.run FROM branches b JOIN threads t ON t.key = b.thread WHERE t.id = ? AND b.name = coalesce(?, t.head)",
  );
  const lineByKey = db.prepare<[number], Line>("SELECT key, name, parent, origin, run FROM branches WHERE key = ?");
  const branchList = db.prepare<[string], { name: string; from: number | null; head: number | null }>(
    'SELECT b.name, b.origin AS "from", (SELECT max(c.key) & 0xffffff FROM checkpoints c WHERE c.key BETWEEN b.key << 24 AND (b.key << 24) + 0xffffff) AS head' +
      " FROM threads t CROSS JOIN branches b INDEXED BY branches_of_thread ON b.thread = t.key" +
      " WHERE t.id = ? AND instr(b.name, '/') = 0 ORDER BY b.key",
  );
  const linesOfThread = db.prepare<[string], Line>(
    "SELECT b.key, b.name, b.parent, b.origin, b.run FROM threads t JOIN branches b ON b.thread = t.key WHERE t.id = ? ORDER BY b.key",
  );
  const awaitedOfLine = db
    .prepare<[number], string>("SELECT id FROM interrupts WHERE branch = ? AND awaited = 1 ORDER BY key")
    .pluck();
  const idsOfLine = db
    .prepare<[number, number], number>("SELECT key & 0xffffff FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key")
    .pluck();
  const oldestBetween = db.prepare<[number, number, number], CheckpointColumns>(
    checkpointColumns + " WHERE c.key BETWEEN ? AND ? ORDER BY c.key LIMIT ?",
  );
  const newestBetween = db.prepare<[number, number, number], CheckpointColumns>(
    checkpointColumns + " WHERE c.key BETWEEN ? AND ? ORDER BY c.key DESC LIMIT ?",
  );
  const checkpointOfThread = db.prepare<[{ thread: string; id: number }], CheckpointColumns>(
    checkpointColumns +
      " WHERE c.key IN (SELECT (x.branch << 24) + @id FROM threads t JOIN child_checkpoints x ON x.key = (t.key << 24) + @id WHERE t.id = @thread" +
      " UNION ALL SELECT (x.key << 24) + @id FROM threads t CROSS JOIN branches x INDEXED BY branches_of_thread ON x.thread = t.key" +
      " WHERE t.id = @thread AND instr(x.name, '/') = 0)",
  );
  const channelsOfLine = db.prepare<[number], { key: number; name: string }>(
    "SELECT key, name FROM channels WHERE branch = ? ORDER BY key",
  );
  const deltasOfCheckpoint = db.prepare<[number, number], DeltaColumns>(
    "SELECT n.name AS channel, d.kind, d.base, d.sum, d.text FROM channels n JOIN deltas d ON d.key = (n.key << 24) + ? WHERE n.branch = ? ORDER BY n.key",
  );
  const deltasFromBase = db.prepare<
    [{ from: number; until: number }],
    Omit<DeltaColumns, "channel"> & { checkpoint: number }
  >(
    "SELECT kind, base, sum, text, key & 0xffffff AS checkpoint FROM deltas WHERE key <= @until AND key >= coalesce(" +
      "(SELECT key FROM deltas WHERE key BETWEEN @from AND @until AND base = 1 ORDER BY key DESC LIMIT 1), @from) ORDER BY key",
  );
  const effectsOfLine = db.prepare<[number], EffectColumns>(effectColumns + " WHERE branch = ? ORDER BY step, key");
  const effectsOfStep = db.prepare<[number, number], EffectColumns>(
    effectColumns + " WHERE branch = ? AND step = ? ORDER BY key",
  );
  const foldedOfLine = db.prepare<[number, number], FoldedColumns & { checkpoint: number }>(
    "SELECT key & 0xffffff AS checkpoint, effects, effects_sum FROM checkpoints WHERE key BETWEEN ? AND ?" +
      " AND (effects IS NOT NULL OR effects_sum IS NOT NULL) ORDER BY key",
  );
  const newestStep = db.prepare<[number, number], { key: number; step: number }>(
    "SELECT key, step FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
  );
  const interruptList = db.prepare<[number], Omit<InterruptColumns, "branch">>(
    "SELECT id, step, task, node, name, payload, schema, raised, expires, answer, answered, more, sum FROM interrupts" +
      " WHERE branch = ? ORDER BY key",
  );

  const nextOnBranches = db
    .prepare<[{ thread: string; id: number }], number | null>(
      "SELECT min((SELECT c.key & 0xffffff FROM checkpoints c WHERE c.key BETWEEN (b.key << 24) + @id AND (b.key << 24) + 0xffffff ORDER BY c.key LIMIT 1))" +
        " FROM threads t JOIN branches b ON b.thread = t.key AND instr(b.name, '/') = 0 WHERE t.id = @thread",
    )
    .pluck();
  const nextOnChildLines = db
    .prepare<[{ thread: string; id: number }], number | null>(
      "SELECT x.key & 0xffffff FROM threads t JOIN child_checkpoints x ON x.key BETWEEN (t.key << 24) + @id AND (t.key << 24) + 0xffffff" +
        " WHERE t.id = @thread ORDER BY x.key LIMIT 1",
    )
    .pluck();
  const lastOfThread = db
    .prepare<[string], number>("SELECT " + reachedCheckpoint + " FROM threads t WHERE t.id = ?")
    .pluck();
  const factsBetween = db.prepare<[string, number, number, number], FactColumns>(
    "SELECT f.seq, b.name AS branch, f.at, f.sum, f.text FROM threads t JOIN facts f ON f.thread = t.key JOIN branches b ON b.key = f.branch" +
      " WHERE t.id = ? AND f.seq > ? AND f.seq < ? ORDER BY f.seq LIMIT ?",
  );
  const anyLetter = db.prepare<[], number>("SELECT 1 FROM letters LIMIT 1").pluck();
  const lettersOf = db.prepare<[string, string], Omit<LetterColumns, "branch">>(letterList + " ORDER BY l.key");
  const lettersThatWait = db.prepare<[string, string], Omit<LetterColumns, "branch">>(
    letterList + " AND l.taken = '' ORDER BY l.key",
  );
  const readLetters = (
    rows: readonly Omit<LetterColumns, "branch">[],
    thread: string,
    branch: string,
  ): readonly LetterRow[] => {
    if (rows.length === 0) return [];
    const seals = sealsOf(thread);
    return rows.map((row) => readLetter(seals, thread, { ...row, branch }));
  };
  const questions = db.prepare<[QuestionParameters], QuestionColumns>(questionList);
  const questionsOfThread = db.prepare<[QuestionParameters & { thread: string }], QuestionColumns>(
    questionListOfThread,
  );
  const timersByDue = db.prepare<[number, number], TimerColumns>(timerList);
  const timersOfThread = db.prepare<[string, number, number], TimerColumns>(timerListOfThread);

  /** What the values of a thread are sealed with; kept until `forgetSeals`, so that a page of rows asks once. */
  function sealsOf(thread: string): Seals | undefined {
    if (vault === undefined) return undefined;
    const secret = secretOf.get(thread);
    if (secret === undefined) return undefined;
    if (current?.thread !== thread) current = { thread, seals: vault.of(thread, secret) };
    return current.seals;
  }

  /** A checkpoint with its deltas, when both are what was written. */
  function checked(thread: string, columns: CheckpointColumns): CheckpointWithDeltas {
    const seals = sealsOf(thread);
    const row = parsed(thread, columns, seals);
    const deltas = deltasOfCheckpoint
      .all(columns.id, columns.line)
      .map((delta) => readDelta(seals, { thread, line: columns.branch, checkpoint: columns.id }, delta));
    if (checkpointHash(row, columns, deltas, columns.parentHash ?? undefined, seals) === columns.hash)
      return { ...row, deltas };
    throw changed(thread, columns.id);
  }

  function parsed(thread: string, columns: CheckpointColumns, seals: Seals | undefined): CheckpointRow {
    const { branch, id } = columns;
    const control = opened(seals, thread, columns.control, () => controlPlace(branch, id));
    try {
      return checkpointRow({ ...columns, control });
    } catch (cause) {
      throw changed(thread, columns.id, cause);
    }
  }

  function checkedColumns(thread: string, columns: CheckpointColumns | undefined): CheckpointColumns | undefined {
    return columns === undefined ? undefined : { ...columns, control: checked(thread, columns).control };
  }

  /** A line and those before it, each with the newest checkpoint that counts. */
  function lineage(line: Line, until: number): readonly { readonly line: Line; readonly until: number }[] {
    const parent = line.parent === null ? undefined : lineByKey.get(line.parent);
    return parent === undefined
      ? [{ line, until }]
      : [{ line, until }, ...lineage(parent, Math.min(until, line.origin ?? 0))];
  }

  /** What leads to the values of a line's channels at a checkpoint, by channel, and the names of those that have a base. */
  function segmentRows(
    thread: string,
    line: Line,
    until: number,
    based: ReadonlySet<string>,
  ): readonly (readonly [string, readonly DeltaRow[]])[] {
    const seals = sealsOf(thread);
    return channelsOfLine
      .all(line.key)
      .filter(({ name }) => !based.has(name))
      .map(({ key, name }) => {
        const rows = deltasFromBase.all({ from: keyAt(key, 0), until: keyAt(key, until) });
        return [
          name,
          rows.map(({ checkpoint, kind, base, sum, text }) =>
            readDelta(seals, { thread, line: line.name, checkpoint }, { channel: name, kind, base, sum, text }),
          ),
        ];
      });
  }

  function find(thread: string, id: number): CheckpointColumns | undefined {
    return checkedColumns(thread, checkpointOfThread.get({ thread, id }));
  }

  /** What the checkpoints of a line folded: all of them, or the one that folded a step. */
  function folded(thread: string, line: Line, step: number | undefined): readonly EffectRow[] {
    const found = step === undefined ? [keyAt(line.key, 0), keyAt(line.key, largestCheckpoint)] : foldOf(line, step);
    const [from, until] = found;
    if (from === undefined || until === undefined) return [];
    return foldedOfLine
      .all(from, until)
      .flatMap((row) => readFolded({ thread, line: line.name, checkpoint: row.checkpoint }, row))
      .filter((row) => step === undefined || row.step === step);
  }

  /** The key of the checkpoint that folded a step, twice, looked for by halves: steps go up along a line. */
  function foldOf({ key: line }: Line, step: number): readonly number[] {
    const newest = newestStep.get(keyAt(line, 0), keyAt(line, largestCheckpoint));
    if (newest === undefined || newest.step <= step) return [];
    let [low, high] = [keyAt(line, 0), newest.key];
    while (low < high) {
      const middle = low + Math.floor((high - low) / 2);
      const found = newestStep.get(low, middle);
      if (found === undefined || found.step <= step) low = middle + 1;
      else high = found.key;
    }
    return [high, high];
  }

  /** The first checkpoint of a thread, on whatever line, from an id on. */
  function nextId(thread: string, id: number): number | undefined {
    const found = [nextOnBranches.get({ thread, id }), nextOnChildLines.get({ thread, id })].filter(
      (next) => next != null,
    );
    return found.length === 0 ? undefined : Math.min(...found);
  }

  /** The first id whose number among the events may be above `after`: both count up together. */
  function firstAfter(thread: string, after: number): number {
    let low = 1;
    let high = after <= 0 ? 1 : (lastOfThread.get(thread) ?? 0) + 1;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const id = nextId(thread, middle);
      const seq = id === undefined ? undefined : checkpointOfThread.get({ thread, id })?.seq;
      if (seq === undefined || seq > after) high = middle;
      else low = (id ?? middle) + 1;
    }
    return low;
  }

  function headOf(thread: string, line: number): CheckpointColumns | undefined {
    return checkedColumns(thread, newestBetween.get(keyAt(line, 0), keyAt(line, largestCheckpoint), 1));
  }

  return {
    ...createLists(db, sealsOf, told),
    seals: sealsOf,
    secret: (thread) => secretOf.get(thread),
    forgetSeals: () => {
      current = undefined;
    },
    line: (thread, branch) => lineByName.get(thread, branch ?? null),
    find,
    headOf,
    lines: (thread) => linesOfThread.all(thread),
    own: (thread, line, after, limit) =>
      oldestBetween.all(keyAt(line.key, after + 1), keyAt(line.key, largestCheckpoint), limit).map((columns) => {
        const { deltas, ...row } = checked(thread, columns);
        const { graph, version, shape } = columns;
        return { row, deltas, writtenBy: { graph, version, shape } };
      }),
    ids: (line) => idsOfLine.all(keyAt(line.key, 0), keyAt(line.key, largestCheckpoint)),
    idsBack: function* (line) {
      for (const { line: each, until } of lineage(line, largestCheckpoint))
        for (let id = until; ; id--) {
          const found = newestBetween.get(keyAt(each.key, 0), keyAt(each.key, id), 1);
          if (found === undefined) break;
          id = found.id;
          yield id;
        }
    },
    awaited: (line) => awaitedOfLine.all(line.key),
    facts: (thread) =>
      factsBetween.all(thread, -1, Number.MAX_SAFE_INTEGER, -1).map((row) => readFact(sealsOf(thread), thread, row)),
    branches: (thread) =>
      branchList
        .all(thread)
        .map(({ name, from, head }) => ({ name, from: from ?? undefined, head: head ?? from ?? undefined })),
    checkpoint: (thread, id) => {
      const found = find(thread, id);
      return found === undefined ? undefined : checkpointRow(found);
    },
    writtenBy: (thread, id) => {
      const found = find(thread, id);
      if (found === undefined) return undefined;
      const { graph, version, shape } = found;
      return { graph, version, shape };
    },
    head: (thread, branch) => {
      const line = lineByName.get(thread, branch ?? null);
      const found = line === undefined ? undefined : headOf(thread, line.key);
      return found === undefined ? undefined : checkpointRow(found);
    },
    history: (thread, { branch, before, limit }) => {
      const start = lineByName.get(thread, branch ?? null);
      const found: CheckpointWithDeltas[] = [];
      const newest = before === undefined ? largestCheckpoint : before - 1;
      for (const { line, until } of start === undefined ? [] : lineage(start, newest)) {
        const rows = newestBetween.all(keyAt(line.key, 0), keyAt(line.key, until), limit - found.length);
        for (const row of rows) found.push(checked(thread, row));
        if (found.length === limit) break;
      }
      return found;
    },
    state: (thread, checkpoint) => {
      const at = find(thread, checkpoint);
      const start = at === undefined ? undefined : lineByKey.get(at.line);
      if (start === undefined) throw storeRules.unknownCheckpoint(thread, checkpoint);
      const channels = new Map<string, readonly DeltaRow[]>();
      const based = new Set<string>();
      for (const { line, until } of lineage(start, checkpoint)) {
        for (const [name, rows] of segmentRows(thread, line, until, based)) {
          channels.set(name, [...rows, ...(channels.get(name) ?? [])]);
          if (rows[0]?.base === true) based.add(name);
        }
      }
      return [...channels]
        .filter(([, deltas]) => deltas.length > 0)
        .map(([channel, deltas]) => ({ channel, deltas: deltas.map(({ kind, text }) => ({ kind, text })) }));
    },
    effects: (thread, branch, step) => {
      const line = lineByName.get(thread, branch);
      if (line === undefined) return [];
      const rows = step === undefined ? effectsOfLine.all(line.key) : effectsOfStep.all(line.key, step);
      const seals = sealsOf(thread);
      const own = rows.map((columns) => readEffect(seals, { thread, line: line.name }, columns));
      const told = folded(thread, line, step);
      return told.length === 0 ? own : merged(told, own);
    },
    interrupts: (thread, branch) => {
      const line = lineByName.get(thread, branch);
      if (line === undefined) return [];
      const seals = sealsOf(thread);
      return interruptList.all(line.key).map((row) => interruptRow(readQuestion(seals, thread, { ...row, branch })));
    },
    hasLetters: () => anyLetter.get() !== undefined,
    inbox: (thread, branch) => readLetters(lettersThatWait.all(branch, thread), thread, branch),
    letters: (thread, branch) => readLetters(lettersOf.all(branch, thread), thread, branch),
    events: (thread, { after, from, limit }) => {
      const checkpoints: CheckpointWithDeltas[] = [];
      let id = nextId(thread, from === undefined ? firstAfter(thread, after) : from + 1);
      for (; id !== undefined && checkpoints.length < limit; id = nextId(thread, id + 1)) {
        const found = checkpointOfThread.get({ thread, id });
        if (found !== undefined && found.seq > after) checkpoints.push(checked(thread, found));
      }
      const until = id === undefined ? Number.MAX_SAFE_INTEGER : (checkpoints[checkpoints.length - 1]?.seq ?? 0);
      const facts = factsBetween
        .all(thread, after, until, limit)
        .map((columns): StoredEvent => ({ fact: readFact(sealsOf(thread), thread, columns) }));
      const seqOf = (event: StoredEvent): number => ("fact" in event ? event.fact.seq : event.checkpoint.seq);
      return [...facts, ...checkpoints.map((checkpoint) => ({ checkpoint }))]
        .sort((one, other) => seqOf(one) - seqOf(other))
        .slice(0, limit);
    },
    questions: ({ thread, graph, key, at, before, limit }) => {
      const wanted: QuestionParameters = {
        graph: graph ?? null,
        name: key ?? null,
        at: at ?? Number.NEGATIVE_INFINITY,
        before: before?.place ?? Number.MAX_SAFE_INTEGER,
        limit: limit ?? -1,
      };
      return readableRows(
        thread,
        wanted,
        (wider) => (thread === undefined ? questions.all(wider) : questionsOfThread.all({ ...wider, thread })),
        (row) => questionRow(readQuestion(sealsOf(row.thread), row.thread, row)),
        told,
      );
    },
    timers: ({ thread, dueBy = Number.POSITIVE_INFINITY, limit = -1 }) => {
      return readableRows(
        thread,
        { limit },
        ({ limit: most }) =>
          thread === undefined ? timersByDue.all(dueBy, most) : timersOfThread.all(thread, dueBy, most),
        (columns) => {
          const row = timerRow(columns);
          if (timerSum(row) === columns.sum) return row;
          throw corrupt(`the timer "${row.id}" is not what was written`, { thread: row.thread, branch: row.branch });
        },
        told,
      );
    },
  };
}

/** Effects of both by their steps; of several with one place the last counts. */
function merged(told: readonly EffectRow[], own: readonly EffectRow[]): readonly EffectRow[] {
  const effects = new Map<string, EffectRow>();
  for (const row of [...told, ...own]) effects.set(JSON.stringify([row.step, row.task, row.key]), row);
  return [...effects.values()].sort((one, other) => one.step - other.step);
}

function changed(thread: string, checkpoint: number, cause?: unknown) {
  return corrupt(`checkpoint ${checkpoint} is not what was written`, { thread }, cause);
}
