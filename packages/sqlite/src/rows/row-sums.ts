/**
 * Sums of rows that are changed a few columns at a time: SQLite itself is given the functions that sum such a row as it
 * stands. They are of this connection only: no table or index of the file names them.
 */
import { crc32 } from "node:zlib";
import type { Database } from "better-sqlite3";
import { type EffectColumns, effectRow, effectSum } from "./rows.ts";

const runSum =
  "sum_of_run(r.thread, r.branch, r.id, r.graph, r.version, r.status, r.attempt, r.started, r.epoch, r.ended, r.error, r.name, r.metadata, r.input, r.more)";

/** The sum of a run of which columns are changed to the parameters of their names, in the statement that changes them. */
export const changedRunSum: string =
  "sum_of_run(thread, branch, id, graph, @version, @status, @attempt, started, @epoch, @ended, @error, name, metadata, @input, @more)";

/** Tells of a row of `runs r` whether it is what was written. */
export const runIsIntact: string = "r.sum IS " + runSum + " AS intact";

/** Put the sum of the run with a key. */
export const putRunSum: string = "UPDATE runs AS r SET sum = " + runSum + " WHERE r.key = ?";

/** The sum of an effect whose outcome was folded. */
export const foldedEffectSum: string =
  "sum_of_folded(step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args)";

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
];

/** What is sealed is not summed. */
function foldedSum(...columns: unknown[]): number {
  const [step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args] = columns as [
    ...Folded,
  ];
  const plain = typeof args === "string" ? args : null;
  const row = { step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage };
  return effectSum(effectRow({ ...row, args: plain, sum: null, outcome: null }));
}

/** Let statements of this connection sum rows. */
export function knowRowSums(db: Database): void {
  const options = { varargs: true, deterministic: true, directOnly: true } as const;
  db.function("sum_of_run", options, (...columns: unknown[]) => sumOfColumns(columns));
  db.function("sum_of_folded", options, foldedSum);
}

/** The sum of columns as they are read; of `runs` in the order of {@link changedRunSum}. */
export function sumOfColumns(columns: readonly unknown[]): number {
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
