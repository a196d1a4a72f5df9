/** Checksums over the columns of a row, for rows whose columns are updated separately. */
import { crc32 } from "node:zlib";
import { computeEffectSum, type EffectColumns, toEffectRow } from "./rows.ts";

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
  usage: string | null,
];

/**
 * Computes the checksum of an effect without its outcome, from the columns of its row up to the tokens. Encrypted
 * arguments are excluded.
 */
export function computeFoldedSum(columns: readonly unknown[]): number {
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
    usage,
  ] = columns as Folded;
  const plain = typeof args === "string" ? args : null;
  const repeats = { processes, attempt_log, usage };
  const row = { step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, ...repeats };
  return computeEffectSum(toEffectRow({ ...row, args: plain, sum: null, outcome: null }));
}

/** Computes the checksum of the columns of a row, in the order of the columns. */
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
