/** Journal rows: a single row per effect, identified within its namespace by step, task and key. */

import type { EffectRow } from "@statewright/core/store";
import {
  checkWellFormed,
  type ThreadCipher,
  toAttemptLogText,
  toEffectPayload,
  toUsageText,
} from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import type { NamespaceRow } from "../read/namespace-reader.ts";

/** Namespace of a journal with the cipher of its values. */
export interface JournalNamespace {
  readonly namespace: Pick<NamespaceRow, "key" | "name">;
  readonly cipher: ThreadCipher | undefined;
}

export interface EffectRows {
  /** Writes an effect, replacing an existing row. */
  put(at: JournalNamespace, row: EffectRow): void;
  /** Writes an effect unless its row exists. */
  add(at: JournalNamespace, row: EffectRow): void;
}

const insert =
  "INSERT INTO effects (branch, step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, sum, processes, attempt_log, usage, outcome)" +
  " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (branch, step, task, call) DO ";

export function createEffectRows(db: Database): EffectRows {
  const put = db.prepare(
    insert +
      "UPDATE SET kind = excluded.kind, name = excluded.name, effect = excluded.effect," +
      " state = excluded.state, attempts = excluded.attempts, idempotency = excluded.idempotency, started = excluded.started," +
      " ended = excluded.ended, stage = excluded.stage, args = excluded.args, sum = excluded.sum, processes = excluded.processes," +
      " attempt_log = excluded.attempt_log, usage = excluded.usage, outcome = excluded.outcome",
  );
  const add = db.prepare(insert + "NOTHING");
  return {
    put: (at, row) => put.run(...toColumns(at, row)),
    add: (at, row) => add.run(...toColumns(at, row)),
  };
}

function toColumns({ namespace, cipher }: JournalNamespace, row: EffectRow): readonly unknown[] {
  const { step, task, key, kind, name, effect, state, attempts, idempotencyKey, startedAt, endedAt, stage } = row;
  const { sum, args, outcome } = toEffectPayload(cipher, namespace.name, row);
  const about = [kind, name, effect, state, attempts, idempotencyKey, startedAt, endedAt ?? null, stage ?? null];
  const repeats = [row.processes ?? null, toAttemptLogText(row), toUsageText(row)];
  return [namespace.key, step, checkWellFormed(task), checkWellFormed(key), ...about, args, sum, ...repeats, outcome];
}
