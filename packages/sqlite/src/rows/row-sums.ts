/**
 * Checksums of rows whose columns are updated separately: SQL functions compute the checksum of such a row in the
 * statement. The functions exist on this connection only; no table or index of the file uses them.
 */
import { crc32 } from "node:zlib";
import type { Database } from "better-sqlite3";
import { computeEffectSum, type EffectColumns, toEffectRow } from "./rows.ts";

const runSum =
  "sum_of_run(r.thread, r.branch, r.id, r.graph, r.version, r.status, r.attempt, r.started, r.epoch, r.ended, r.error, r.name, r.metadata, r.input, r.more)";

/** SQL for the checksum of an updated run, computed in the update from its named parameters. */
export const changedRunSum: string =
  "sum_of_run(thread, branch, id, graph, @version, @status, @attempt, started, @epoch, @ended, @error, name, metadata, @input, @more)";

/** SQL column that is 1 if a row of `runs r` matches its checksum. */
export const runIsIntact: string = "r.sum IS " + runSum + " AS intact";

/** SQL that stores the checksum of a run by its key. */
export const putRunSum: string = "UPDATE runs AS r SET sum = " + runSum + " WHERE r.key = ?";

/** SQL for the checksum of an effect whose outcome was removed by a fold. */
export const foldedEffectSum: string =
  "sum_of_folded(step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, processes, attempt_log)";

type Folded = readonly [
  step: number,
  task: string,
  call: string,
  kind: EffectColumns["kind"],
  name: string,
  effect: EffectColumns["effect"],
  state: EffectColumns["state"],
  attempts: number,
  idempotency: string,
  started: number,
  ended: number | null,
  stage: string | null,
  args: string | Uint8Array | null,
  processes: number | null,
  attempt_log: string | null,
];

/** Encrypted arguments are excluded from the checksum. */
function computeFoldedSum(...columns: unknown[]): number {
  const [
    step,
    task,
    call,
    kind,
    name,
    effect,
    state,
    attempts,
    idempotency,
    started,
    ended,
    stage,
    args,
    processes,
    attempt_log,
  ] = columns as [...Folded];
  const plain = typeof args === "string" ? args : null;
  const repeats = { processes, attempt_log };
  const row = { step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, ...repeats };
  return computeEffectSum(toEffectRow({ ...row, args: plain, sum: null, outcome: null }));
}

/** Registers the checksum functions on this connection. */
export function registerRowSums(db: Database): void {
  const options = { varargs: true, deterministic: true, directOnly: true } as const;
  db.function("sum_of_run", options, (...columns: unknown[]) => computeColumnSum(columns));
  db.function("sum_of_folded", options, computeFoldedSum);
}

/** Computes the checksum of columns; for `runs` in the order of {@link changedRunSum}. */
export function computeColumnSum(columns: readonly unknown[]): number {
  let sum = 0;
  let text = "";
  for (const column of columns) {
    if (column instanceof Uint8Array) {
      sum = crc32(column, crc32(`${text}blob`, sum));
      text = "";
    } else text += typeof column === "string" ? `text ${column}` : String(column);
  }
  return crc32(text, sum);
}
