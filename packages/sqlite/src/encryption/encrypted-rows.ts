/**
 * Rows with what they hold as it is, or sealed where the thread has seals. The sum of a sealed row is over its plain
 * columns only: what is sealed carries its own proof, and a sum of it would tell something of it.
 */
import type { DeltaRow, EffectRow, EventRow, InterruptRow, LetterRow, RunRow } from "@statewright/core";
import { corrupt } from "../file/store-errors.ts";
import {
  type DeltaColumns,
  deltaRow,
  deltaSum,
  type EffectColumns,
  effectRow,
  effectSum,
  type FactColumns,
  factSum,
  type InterruptColumns,
  interruptRow,
  interruptSum,
  type LetterColumns,
  letterSum,
  moreOfQuestion,
  moreText,
  type RunColumns,
  runRow,
} from "../rows/rows.ts";
import { opened, type Payload, type Place, type Seals } from "./cipher.ts";

/** Where a delta stands. */
export interface DeltaPlace {
  readonly thread: string;
  readonly line: string;
  readonly checkpoint: number;
}

/** The columns of a delta that depend on whether it is sealed. */
export function deltaColumns(
  seals: Seals | undefined,
  at: DeltaPlace,
  row: DeltaRow,
): { readonly sum: number; readonly text: Payload } {
  if (seals === undefined) return { sum: deltaSum(at.line, at.checkpoint, row), text: row.text };
  return {
    sum: deltaSum(at.line, at.checkpoint, { ...row, text: "" }),
    text: seals.seal(row.text, placeOf(at, row)),
  };
}

/** A delta as it was written. Throws `store_corrupt` for any other, `missing_key`. */
export function readDelta(seals: Seals | undefined, at: DeltaPlace, columns: DeltaColumns): DeltaRow {
  const stored = deltaRow(columns);
  const { thread, line, checkpoint } = at;
  const text = opened(seals, thread, columns.text, () => placeOf(at, stored));
  const [row, summed] =
    seals === undefined
      ? [stored, stored]
      : [
          { ...stored, text },
          { ...stored, text: "" },
        ];
  if (deltaSum(line, checkpoint, summed) === columns.sum) return row;
  throw corrupt(`checkpoint ${checkpoint} is not what was written`, { thread }, undefined, { checkpoint });
}

function placeOf({ line, checkpoint }: DeltaPlace, { channel, kind, base }: Omit<DeltaRow, "text">): Place {
  return ["deltas.text", line, checkpoint, channel, kind, base];
}

/** The columns of an effect that depend on whether they are sealed. */
export interface EffectPayload {
  readonly sum: number;
  readonly args: Payload | null;
  readonly outcome: Payload | null;
}

export function effectPayload(seals: Seals | undefined, line: string, row: EffectRow): EffectPayload {
  const { args, outcome } = row;
  if (seals === undefined) return { sum: effectSum(row), args: args ?? null, outcome: outcome ?? null };
  return {
    sum: effectSum({ ...row, args: undefined, outcome: undefined }),
    args: args === undefined ? null : seals.seal(args, effectPlace("args", line, row)),
    outcome: outcome === undefined ? null : seals.seal(outcome, effectPlace("outcome", line, row)),
  };
}

/** An effect as it was written. Throws `store_corrupt` for any other, `missing_key`. */
export function readEffect(
  seals: Seals | undefined,
  { thread, line }: Omit<DeltaPlace, "checkpoint">,
  columns: EffectColumns,
): EffectRow {
  const stored = effectRow(columns);
  const { args, outcome, ...plain } = stored;
  const row =
    seals === undefined
      ? stored
      : {
          ...stored,
          ...(args === undefined ? {} : { args: seals.open(args, effectPlace("args", line, plain)) }),
          ...(outcome === undefined ? {} : { outcome: seals.open(outcome, effectPlace("outcome", line, plain)) }),
        };
  if (effectSum(seals === undefined ? row : plain) === columns.sum) return row;
  const { step, task, key } = row;
  throw corrupt(`the effect "${key}" of step ${step} is not what was written`, { thread, branch: line, task });
}

function effectPlace(column: string, line: string, row: Omit<EffectRow, "args" | "outcome">): Place {
  const { step, task, key, kind, name, effect, state, attempts, idempotencyKey } = row;
  return [`effects.${column}`, line, step, task, key, kind, name, effect, state, attempts, idempotencyKey];
}

/** The columns of a question that depend on whether they are sealed. */
export interface QuestionPayload {
  readonly sum: number;
  readonly payload: Payload;
  readonly answer: Payload | null;
  readonly more: Payload | null;
}

export function questionPayload(seals: Seals | undefined, line: string, row: InterruptRow): QuestionPayload {
  const { payload, answer } = row;
  const more = moreOfQuestion(row);
  if (seals === undefined) return { sum: interruptSum(row), payload, answer: answer ?? null, more };
  return {
    sum: interruptSum(bare(row)),
    payload: seals.seal(payload, questionPlace("payload", line, row)),
    answer: answer === undefined ? null : seals.seal(answer, questionPlace("answer", line, row)),
    more: more === null ? null : seals.seal(more, questionPlace("more", line, row)),
  };
}

/** A question's columns with its payload open, when all of them are what was written. Throws `store_corrupt`, `missing_key`. */
export function readQuestion<Columns extends InterruptColumns>(
  seals: Seals | undefined,
  thread: string,
  columns: Columns,
): Columns {
  const { branch, id, step, task, node, name: key, payload, answer, more } = columns;
  const at = { id, step, task, node, key };
  const open =
    seals === undefined
      ? columns
      : {
          ...columns,
          payload: seals.open(payload, questionPlace("payload", branch, at)),
          answer: answer === null ? null : seals.open(answer, questionPlace("answer", branch, at)),
          more: more === null ? null : seals.open(more, questionPlace("more", branch, at)),
        };
  const row = interruptRow(open);
  if (interruptSum(seals === undefined ? row : bare(row)) === columns.sum) return open;
  throw corrupt(`the question "${id}" is not what was written`, { thread, branch, task });
}

/** A question without what is sealed. */
function bare({
  answer: _a,
  onExpire: _o,
  expiredAt: _e,
  answeredBy: _b,
  about: _c,
  ...row
}: InterruptRow): InterruptRow {
  return { ...row, payload: "" };
}

function questionPlace(
  column: string,
  line: string,
  { id, step, task, node, key }: Pick<InterruptRow, "id" | "step" | "task" | "node" | "key">,
): Place {
  return [`interrupts.${column}`, line, id, step, task, node, key];
}

/** The columns of a run that may be sealed. */
export interface RunPayload {
  readonly error: Payload | null;
  readonly input: Payload | null;
  readonly more: Payload | null;
}

export function runPayload(seals: Seals | undefined, row: RunRow): RunPayload {
  const { id, error, input } = row;
  const plain = {
    error: error === undefined ? null : JSON.stringify(error),
    input: input ?? null,
    more: moreText(row),
  };
  if (seals === undefined) return plain;
  const seal = (column: keyof RunPayload): Payload | null => {
    const text = plain[column];
    return text === null ? null : seals.seal(text, [`runs.${column}`, id]);
  };
  return { error: seal("error"), input: seal("input"), more: seal("more") };
}

/** A run as it was written. Throws `store_corrupt` for any other, `missing_key`. */
export function readRun(seals: Seals | undefined, columns: RunColumns): RunRow {
  if (columns.intact !== 1)
    throw corrupt(`the run "${columns.id}" is not what was written`, {
      thread: columns.thread,
      branch: columns.branch,
    });
  if (seals === undefined) return runRow(columns);
  const open = (column: keyof RunPayload): string | null => {
    const value = columns[column];
    return value === null ? null : seals.open(value, [`runs.${column}`, columns.id]);
  };
  return runRow({ ...columns, error: open("error"), input: open("input"), more: open("more") });
}

/** The columns of a fact that depend on whether they are sealed. */
export function factColumns(seals: Seals | undefined, row: EventRow): { readonly sum: number; readonly text: Payload } {
  if (seals === undefined) return { sum: factSum(row), text: row.text };
  return {
    sum: factSum({ ...row, text: "" }),
    text: seals.seal(row.text, ["facts.text", row.seq, row.branch, row.at]),
  };
}

/** A fact as it was written. Throws `store_corrupt` for any other, `missing_key`. */
export function readFact(seals: Seals | undefined, thread: string, columns: FactColumns): EventRow {
  const { seq, branch, at, sum } = columns;
  const text = opened(seals, thread, columns.text, () => ["facts.text", seq, branch, at]);
  const row = { seq, branch, at, text };
  if (factSum(seals === undefined ? row : { ...row, text: "" }) === sum) return row;
  throw corrupt(`the event ${seq} is not what was written`, { thread, branch });
}

/** The columns of a letter that depend on whether they are sealed. */
export function letterColumns(
  seals: Seals | undefined,
  row: LetterRow,
): { readonly sum: number; readonly messages: Payload } {
  if (seals === undefined) return { sum: letterSum(row), messages: row.messages };
  return { sum: letterSum({ ...row, messages: "" }), messages: seals.seal(row.messages, letterPlace(row)) };
}

/** A letter as it was written. Throws `store_corrupt` for any other, `missing_key`. */
export function readLetter(seals: Seals | undefined, thread: string, columns: LetterColumns): LetterRow {
  const { id, branch, kind, at, taken, sum } = columns;
  const messages = opened(seals, thread, columns.messages, () => letterPlace(columns));
  const row = { id, branch, kind, messages, at, ...(taken === "" ? {} : { taken }) };
  if (letterSum(seals === undefined ? row : { ...row, messages: "" }) === sum) return row;
  throw corrupt(`the letter "${id}" is not what was written`, { thread, branch });
}

function letterPlace({ branch, id, kind, at }: Pick<LetterRow, "branch" | "id" | "kind" | "at">): Place {
  return ["letters.messages", branch, id, kind, at];
}

/** Where the control state of a checkpoint stands. */
export function controlPlace(line: string, checkpoint: number): Place {
  return ["checkpoints.control", line, checkpoint];
}
