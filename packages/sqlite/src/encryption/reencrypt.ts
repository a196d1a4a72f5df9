/** Everything of a thread that may be sealed, some rows at a time: to look whether it is what was written, or to seal it again. */
import type { Database } from "better-sqlite3";
import { keyAt, largestCheckpoint } from "../file/schema.ts";
import type { Reader } from "../read/reader.ts";
import { type FoldedColumns, readFolded } from "../rows/folded-effects.ts";
import { putRunSum, runIsIntact } from "../rows/row-sums.ts";
import {
  type DeltaColumns,
  type EffectColumns,
  type FactColumns,
  type InterruptColumns,
  interruptRow,
  type LetterColumns,
  type RunColumns,
} from "../rows/rows.ts";
import type { Artifacts } from "../write/artifacts.ts";
import { opened, type Payload, type Seals } from "./cipher.ts";
import {
  controlPlace,
  deltaColumns,
  effectPayload,
  factColumns,
  letterColumns,
  questionPayload,
  readDelta,
  readEffect,
  readFact,
  readLetter,
  readQuestion,
  readRun,
  runPayload,
} from "./encrypted-rows.ts";

/** A row that may be sealed, as the file has it. */
export interface SealedRow {
  /** What stands in its payload columns. */
  readonly payload: readonly (Payload | null)[];
  /** Read it, when it is what was written; gives what writes it with other seals. Throws `store_corrupt`, `missing_key`. */
  read(seals: Seals | undefined): (newest: Seals) => void;
}

/** Rows of one kind that a thread has, page by page. */
export interface Sweep {
  /** Rows after `after`, at most `limit`; `last` is where the next page begins, absent on the last one. */
  page(after: number, limit: number): { readonly rows: readonly SealedRow[]; readonly last: number | undefined };
}

export interface Sweeper {
  /** All that a thread has that may be sealed; its lines and channels as they are now. */
  sweeps(thread: string): readonly Sweep[];
  /** Put the secret of a thread, sealed again. */
  secret(thread: string, sealed: Uint8Array): void;
}

type Keyed<Columns> = Columns & { readonly key: number };

export function createSweeper(
  db: Database,
  { reader, artifacts }: { readonly reader: Reader; readonly artifacts: Artifacts },
): Sweeper {
  const channelsOfLine = db.prepare<[number], { key: number; name: string }>(
    "SELECT key, name FROM channels WHERE branch = ?",
  );
  const controls = db.prepare<[number, number, number], FoldedColumns & { key: number; id: number; control: Payload }>(
    "SELECT key, key & 0xffffff AS id, control, effects, effects_sum FROM checkpoints WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
  );
  const putControl = db.prepare<[Payload, number]>("UPDATE checkpoints SET control = ? WHERE key = ?");
  const deltas = db.prepare<[number, number, number], Keyed<Omit<DeltaColumns, "channel">> & { id: number }>(
    "SELECT key, key & 0xffffff AS id, kind, base, sum, text FROM deltas WHERE key > ? AND key <= ? ORDER BY key LIMIT ?",
  );
  const putDelta = db.prepare<[number, Payload, number]>("UPDATE deltas SET sum = ?, text = ? WHERE key = ?");
  const effects = db.prepare<[number, number, number], Keyed<EffectColumns>>(
    "SELECT key, step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, sum, outcome" +
      " FROM effects WHERE branch = ? AND key > ? ORDER BY key LIMIT ?",
  );
  const putEffect = db.prepare<[number | null, Payload | null, Payload | null, number]>(
    "UPDATE effects SET sum = ?, args = ?, outcome = ? WHERE key = ?",
  );
  const questions = db.prepare<[number, number, number], Keyed<Omit<InterruptColumns, "branch">>>(
    "SELECT key, id, step, task, node, name, payload, schema, raised, expires, answer, answered, more, sum FROM interrupts" +
      " WHERE branch = ? AND key > ? ORDER BY key LIMIT ?",
  );
  const putQuestion = db.prepare<[number, Payload, Payload | null, Payload | null, number]>(
    "UPDATE interrupts SET sum = ?, payload = ?, answer = ?, more = ? WHERE key = ?",
  );
  const letters = db.prepare<[number, number, number], Keyed<Omit<LetterColumns, "branch">>>(
    "SELECT key, id, kind, at, taken, sum, messages FROM letters WHERE branch = ? AND key > ? ORDER BY key LIMIT ?",
  );
  const putLetter = db.prepare<[number, Payload, number]>("UPDATE letters SET sum = ?, messages = ? WHERE key = ?");
  const runs = db.prepare<[string, number, number], Keyed<RunColumns>>(
    "SELECT r.key, r.id, t.id AS thread, b.name AS branch, r.graph, r.version, r.status, r.attempt, r.started, r.ended, r.error," +
      " r.name, r.metadata, r.input, r.more, " +
      runIsIntact +
      " FROM threads t CROSS JOIN runs r ON r.thread = t.key JOIN branches b ON b.key = r.branch" +
      " WHERE t.id = ? AND r.key > ? ORDER BY r.key LIMIT ?",
  );
  const putRun = db.prepare<[Payload | null, Payload | null, Payload | null, number]>(
    "UPDATE runs SET error = ?, input = ?, more = ? WHERE key = ?",
  );
  const sumRun = db.prepare<[number]>(putRunSum);
  const facts = db.prepare<[string, number, number], Keyed<FactColumns> & { owner: number }>(
    "SELECT f.thread AS owner, f.seq AS key, f.seq, b.name AS branch, f.at, f.sum, f.text FROM threads t JOIN facts f ON f.thread = t.key" +
      " JOIN branches b ON b.key = f.branch WHERE t.id = ? AND f.seq > ? ORDER BY f.seq LIMIT ?",
  );
  const putFact = db.prepare<[number, Payload, number, number]>(
    "UPDATE facts SET sum = ?, text = ? WHERE thread = ? AND seq = ?",
  );
  const putSecret = db.prepare<[Uint8Array, string]>("UPDATE threads SET secret = ? WHERE id = ?");

  function sweep<Row extends { readonly key: number }>(
    rows: (after: number, limit: number) => readonly Row[],
    payload: (row: Row) => readonly (Payload | null)[],
    read: (row: Row, seals: Seals | undefined) => (newest: Seals) => void,
  ): Sweep {
    return {
      page: (after, limit) => {
        const found = rows(after, limit);
        return {
          rows: found.map((row) => ({ payload: payload(row), read: (seals) => read(row, seals) })),
          last: found.length < limit ? undefined : found.at(-1)?.key,
        };
      },
    };
  }

  function ofLine(thread: string, line: { readonly key: number; readonly name: string }): readonly Sweep[] {
    const { key, name } = line;
    return [
      sweep(
        (after, limit) => controls.all(Math.max(after, keyAt(key, 0)), keyAt(key, largestCheckpoint), limit),
        ({ control }) => [control],
        (row, seals) => {
          const place = controlPlace(name, row.id);
          readFolded({ thread, line: name, checkpoint: row.id }, row);
          const control = opened(seals, thread, row.control, () => place);
          return (newest) => putControl.run(newest.seal(control, place), row.key);
        },
      ),
      sweep(
        (after, limit) => effects.all(key, after, limit),
        ({ args, outcome }) => [args, outcome],
        (row, seals) => {
          const effect = readEffect(seals, { thread, line: name }, row);
          return (newest) => {
            const { sum, args, outcome } = effectPayload(newest, name, effect);
            putEffect.run(row.sum === null ? null : sum, args, outcome, row.key);
          };
        },
      ),
      sweep(
        (after, limit) => questions.all(key, after, limit),
        ({ payload, answer, more }) => [payload, answer, more],
        (row, seals) => {
          const question = interruptRow(readQuestion(seals, thread, { ...row, branch: name }));
          return (newest) => {
            const { sum, payload, answer, more } = questionPayload(newest, name, question);
            putQuestion.run(sum, payload, answer, more, row.key);
          };
        },
      ),
      sweep(
        (after, limit) => letters.all(key, after, limit),
        ({ messages }) => [messages],
        (row, seals) => {
          const letter = readLetter(seals, thread, { ...row, branch: name });
          return (newest) => {
            const { sum, messages } = letterColumns(newest, letter);
            putLetter.run(sum, messages, row.key);
          };
        },
      ),
      ...channelsOfLine.all(key).map((channel) => ofChannel(thread, name, channel)),
    ];
  }

  function ofChannel(
    thread: string,
    line: string,
    { key, name: channel }: { readonly key: number; readonly name: string },
  ): Sweep {
    return sweep(
      (after, limit) => deltas.all(Math.max(after, keyAt(key, 0)), keyAt(key, largestCheckpoint), limit),
      ({ text }) => [text],
      (row, seals) => {
        const at = { thread, line, checkpoint: row.id };
        const delta = readDelta(seals, at, { ...row, channel });
        return (newest) => {
          const { sum, text } = deltaColumns(newest, at, delta);
          putDelta.run(sum, text, row.key);
        };
      },
    );
  }

  function ofThread(thread: string): readonly Sweep[] {
    return [
      sweep(
        (after, limit) => runs.all(thread, after, limit),
        ({ error, input, more }) => [error, input, more],
        (row, seals) => {
          const run = readRun(seals, row);
          return (newest) => {
            const { error, input, more } = runPayload(newest, run);
            putRun.run(error, input, more, row.key);
            sumRun.run(row.key);
          };
        },
      ),
      sweep(
        (after, limit) => facts.all(thread, after, limit),
        ({ text }) => [text],
        (row, seals) => {
          const fact = readFact(seals, thread, row);
          return (newest) => {
            const { sum, text } = factColumns(newest, fact);
            putFact.run(sum, text, row.owner, row.seq);
          };
        },
      ),
    ];
  }

  return {
    sweeps: (thread) => [
      ...reader.lines(thread).flatMap((line) => ofLine(thread, line)),
      ...ofThread(thread),
      ...artifacts.sweeps(thread),
    ],
    secret: (thread, secret) => {
      putSecret.run(secret, thread);
    },
  };
}
