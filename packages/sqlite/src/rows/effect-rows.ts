/** The rows of the journal: an effect in a row of its own, known within its line by step, task and key. */
import type { EffectRow } from "@statewright/core";
import type { Database } from "better-sqlite3";
import type { Seals } from "../encryption/cipher.ts";
import { effectPayload } from "../encryption/encrypted-rows.ts";
import type { Line } from "../read/reader.ts";
import { wellFormed } from "./well-formed.ts";

/** A line whose journal is written, and what its values are sealed with. */
export interface JournalLine {
  readonly line: Pick<Line, "key" | "name">;
  readonly seals: Seals | undefined;
}

export interface EffectRows {
  /** Write an effect, over what stands in its place. */
  put(at: JournalLine, row: EffectRow): void;
  /** Write an effect where nothing stands in its place. */
  add(at: JournalLine, row: EffectRow): void;
}

const insert =
  "INSERT INTO effects (branch, step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, sum, outcome)" +
  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (branch, step, task, call) DO ";

export function createEffectRows(db: Database): EffectRows {
  const put = db.prepare(
    insert +
      "UPDATE SET kind = excluded.kind, name = excluded.name, effect = excluded.effect," +
      " state = excluded.state, attempts = excluded.attempts, idempotency = excluded.idempotency, started = excluded.started," +
      " ended = excluded.ended, stage = excluded.stage, args = excluded.args, sum = excluded.sum, outcome = excluded.outcome",
  );
  const add = db.prepare(insert + "NOTHING");
  return {
    put: (at, row) => put.run(...columnsOf(at, row)),
    add: (at, row) => add.run(...columnsOf(at, row)),
  };
}

function columnsOf({ line, seals }: JournalLine, row: EffectRow): readonly unknown[] {
  const { step, task, key, kind, name, effect, state, attempts, idempotencyKey, startedAt, endedAt, stage } = row;
  const { sum, args, outcome } = effectPayload(seals, line.name, row);
  const about = [kind, name, effect, state, attempts, idempotencyKey, startedAt, endedAt ?? null, stage ?? null];
  return [line.key, step, wellFormed(task), wellFormed(key), ...about, args, sum, outcome];
}
