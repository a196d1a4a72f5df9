/** Reading: what is read is checked against its sums, and no more is read than the answer needs. */

import {
  type ChannelRows,
  type CheckpointRow,
  type CheckpointWithDeltas,
  type DeltaRow,
  type EffectRow,
  type InterruptRow,
  type RunRow,
  type RunStatus,
  storeRules,
  type ThreadRow,
  type TimerRow,
} from "@statewright/core";
import type { Database } from "better-sqlite3";
import { corrupt } from "./errors.ts";
import {
  type CheckpointColumns,
  checkpointHash,
  checkpointRow,
  type DeltaColumns,
  deltaRow,
  deltaSum,
  type EffectColumns,
  effectRow,
  effectSum,
  type InterruptColumns,
  interruptRow,
  interruptSum,
  type RunColumns,
  runRow,
  type ThreadColumns,
  type TimerColumns,
  threadRow,
  timerRow,
  timerSum,
} from "./rows.ts";
import { keyAt, largestCheckpoint } from "./schema.ts";

/** A branch or a child line as its rows name it, and where it came from. */
export interface Line {
  readonly key: number;
  readonly name: string;
  readonly parent: number | null;
  readonly origin: number | null;
  readonly run: number | null;
}

export interface Reader {
  thread(id: string): ThreadRow | undefined;
  threads(filter: {
    readonly graph?: string;
    readonly status?: RunStatus;
    readonly limit?: number;
  }): readonly ThreadRow[];
  branches(
    thread: string,
  ): readonly { readonly name: string; readonly from: number | undefined; readonly head: number | undefined }[];
  runs(filter: { readonly thread?: string; readonly status?: RunStatus; readonly limit?: number }): readonly RunRow[];
  run(key: number): RunRow | undefined;
  checkpoint(thread: string, id: number): CheckpointRow | undefined;
  head(thread: string, branch?: string): CheckpointRow | undefined;
  /** The newest checkpoint of a line as it stands, checked. */
  headOf(thread: string, line: number): CheckpointColumns | undefined;
  /** A checkpoint of any line of a thread as it stands, checked. */
  find(thread: string, id: number): CheckpointColumns | undefined;
  line(thread: string, branch?: string): Line | undefined;
  history(
    thread: string,
    page: { readonly branch?: string | undefined; readonly before?: number | undefined; readonly limit: number },
  ): readonly CheckpointWithDeltas[];
  state(thread: string, checkpoint: number): readonly ChannelRows[];
  effects(thread: string, branch: string, step?: number): readonly EffectRow[];
  interrupts(thread: string, branch: string): readonly InterruptRow[];
  timers(filter: { readonly thread?: string; readonly dueBy?: number; readonly limit?: number }): readonly TimerRow[];
}

const threadColumns =
  "SELECT t.id, g.name AS graph, g.version, t.created, t.updated, t.head, r.status" +
  " FROM threads t JOIN graphs g ON g.key = t.graph LEFT JOIN runs r ON r.key = t.run";

const runColumns =
  "SELECT r.id, t.id AS thread, b.name AS branch, r.graph, r.version, r.status, r.attempt, r.started, r.ended, r.error" +
  " FROM runs r JOIN threads t ON t.key = r.thread JOIN branches b ON b.key = r.branch";

/** `run` is a key where the run has a row, and its id as text where it has none. */
const checkpointColumns =
  "SELECT c.key >> 24 AS line, c.key & 0xffffff AS id, b.name AS branch, c.step, c.parent, c.source, c.nodes, c.control," +
  " CASE typeof(c.run) WHEN 'integer' THEN (SELECT r.id FROM runs r WHERE r.key = c.run) ELSE c.run END AS run," +
  " c.at, c.duration, c.seq, c.bytes, c.hash, g.name AS graph, g.version, g.shape," +
  " (SELECT p.hash FROM checkpoints p WHERE p.key = (CASE WHEN c.parent = b.origin THEN b.parent ELSE b.key END << 24) + c.parent) AS parentHash" +
  " FROM checkpoints c JOIN branches b ON b.key = c.key >> 24 JOIN graphs g ON g.key = c.graph";

const effectColumns =
  "SELECT step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, sum, outcome FROM effects";

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

export function createReader(db: Database): Reader {
  const lineByName = db.prepare<[string, string | null], Line>(
    "SELECT b.key, b.name, b.parent, b.origin, b.run FROM branches b JOIN threads t ON t.key = b.thread WHERE t.id = ? AND b.name = coalesce(?, t.head)",
  );
  const lineByKey = db.prepare<[number], Line>("SELECT key, name, parent, origin, run FROM branches WHERE key = ?");
  const threadById = db.prepare<[string], ThreadColumns>(threadColumns + " WHERE t.id = ?");
  const threadList = db.prepare<[{ graph: string | null; status: string | null; limit: number }], ThreadColumns>(
    threadColumns +
      " WHERE (@graph IS NULL OR g.name = @graph) AND (@status IS NULL OR r.status = @status) ORDER BY t.updated DESC, t.key DESC LIMIT @limit",
  );
  const branchList = db.prepare<[string], { name: string; from: number | null; head: number | null }>(
    'SELECT b.name, b.origin AS "from", (SELECT max(c.key) & 0xffffff FROM checkpoints c WHERE c.key BETWEEN b.key << 24 AND (b.key << 24) + 0xffffff) AS head' +
      " FROM threads t CROSS JOIN branches b INDEXED BY branches_of_thread ON b.thread = t.key" +
      " WHERE t.id = ? AND instr(b.name, '/') = 0 ORDER BY b.key",
  );
  const runList = db.prepare<[{ thread: string | null; status: string | null; limit: number }], RunColumns>(
    runColumns +
      " WHERE (@thread IS NULL OR t.id = @thread) AND (@status IS NULL OR r.status = @status) ORDER BY r.key DESC LIMIT @limit",
  );
  const runsByStatus = db.prepare<[string, number], RunColumns>(
    runColumns + " WHERE r.status = ? ORDER BY r.key DESC LIMIT ?",
  );
  const runByKey = db.prepare<[number], RunColumns>(runColumns + " WHERE r.key = ?");
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
  const interruptList = db.prepare<[number], Omit<InterruptColumns, "branch">>(
    "SELECT id, step, task, node, name, payload, schema, raised, answer, answered, sum FROM interrupts WHERE branch = ? ORDER BY key",
  );

  const timersByDue = db.prepare<[number, number], TimerColumns>(timerList);
  const timersOfThread = db.prepare<[string, number, number], TimerColumns>(timerListOfThread);

  /** A checkpoint with its deltas, when both are what was written. */
  function checked(thread: string, columns: CheckpointColumns): CheckpointWithDeltas {
    const row = parsed(thread, columns);
    const deltas = deltasOfCheckpoint
      .all(columns.id, columns.line)
      .map((delta) => checkedDelta(thread, columns.id, delta));
    if (checkpointHash(row, columns, deltas, columns.parentHash ?? undefined) === columns.hash)
      return { ...row, deltas };
    throw changed(thread, columns.id);
  }

  function parsed(thread: string, columns: CheckpointColumns): CheckpointRow {
    try {
      return checkpointRow(columns);
    } catch (cause) {
      throw changed(thread, columns.id, cause);
    }
  }

  function checkedDelta(thread: string, checkpoint: number, columns: DeltaColumns): DeltaRow {
    const row = deltaRow(columns);
    if (deltaSum(row) === columns.sum) return row;
    throw changed(thread, checkpoint);
  }

  function checkedColumns(thread: string, columns: CheckpointColumns | undefined): CheckpointColumns | undefined {
    if (columns !== undefined) checked(thread, columns);
    return columns;
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
    return channelsOfLine
      .all(line.key)
      .filter(({ name }) => !based.has(name))
      .map(({ key, name }) => {
        const rows = deltasFromBase.all({ from: keyAt(key, 0), until: keyAt(key, until) });
        return [name, rows.map((row) => checkedDelta(thread, row.checkpoint, { ...row, channel: name }))];
      });
  }

  function find(thread: string, id: number): CheckpointColumns | undefined {
    return checkedColumns(thread, checkpointOfThread.get({ thread, id }));
  }

  function headOf(thread: string, line: number): CheckpointColumns | undefined {
    return checkedColumns(thread, newestBetween.get(keyAt(line, 0), keyAt(line, largestCheckpoint), 1));
  }

  return {
    line: (thread, branch) => lineByName.get(thread, branch ?? null),
    find,
    headOf,
    run: (key) => {
      const found = runByKey.get(key);
      return found === undefined ? undefined : runRow(found);
    },
    thread: (id) => {
      const found = threadById.get(id);
      return found === undefined ? undefined : threadRow(found);
    },
    threads: ({ graph, status, limit }) =>
      threadList.all({ graph: graph ?? null, status: status ?? null, limit: limit ?? -1 }).map(threadRow),
    branches: (thread) =>
      branchList
        .all(thread)
        .map(({ name, from, head }) => ({ name, from: from ?? undefined, head: head ?? from ?? undefined })),
    runs: ({ thread, status, limit }) =>
      (thread === undefined && status !== undefined
        ? runsByStatus.all(status, limit ?? -1)
        : runList.all({ thread: thread ?? null, status: status ?? null, limit: limit ?? -1 })
      ).map(runRow),
    checkpoint: (thread, id) => {
      const found = find(thread, id);
      return found === undefined ? undefined : checkpointRow(found);
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
      return rows.map((columns) => {
        const row = effectRow(columns);
        if (columns.sum === null || effectSum(row) === columns.sum) return row;
        throw corrupt(`the effect "${row.key}" of step ${row.step} is not what was written`, {
          thread,
          branch,
          task: row.task,
        });
      });
    },
    interrupts: (thread, branch) => {
      const line = lineByName.get(thread, branch);
      if (line === undefined) return [];
      return interruptList.all(line.key).map((columns) => {
        const row = interruptRow({ ...columns, branch });
        if (interruptSum(row) === columns.sum) return row;
        throw corrupt(`the question "${row.id}" is not what was written`, { thread, branch, task: row.task });
      });
    },
    timers: ({ thread, dueBy = Number.POSITIVE_INFINITY, limit = -1 }) => {
      const found = thread === undefined ? timersByDue.all(dueBy, limit) : timersOfThread.all(thread, dueBy, limit);
      return found.map((columns) => {
        const row = timerRow(columns);
        if (timerSum(row) === columns.sum) return row;
        throw corrupt(`the timer "${row.id}" is not what was written`, { thread: row.thread, branch: row.branch });
      });
    },
  };
}

function changed(thread: string, checkpoint: number, cause?: unknown) {
  return corrupt(`checkpoint ${checkpoint} is not what was written`, { thread }, cause);
}
