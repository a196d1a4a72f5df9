/**
 * Effects that began and ended within the superstep that a commit folds. They stand as one text in the row of the checkpoint
 * that folds them: rows of their own would be two pages more in the commit, for what is only told of from then on.
 */
import { crc32 } from "node:zlib";
import type { EffectRow } from "@statewright/core";
import type { Database } from "better-sqlite3";
import { keyAt } from "../file/schema.ts";
import { corrupt } from "../file/store-errors.ts";
import type { LineAt } from "../write/pruned-ranges.ts";
import type { EffectRows } from "./effect-rows.ts";
import { isWellFormed } from "./well-formed.ts";

/** The columns of a checkpoint that say what it folded; null where it folded nothing, or where that has rows of its own. */
export interface FoldedColumns {
  readonly effects: string | null;
  readonly effects_sum: number | null;
}

/** The checkpoint that folded them. */
interface FoldedPlace {
  readonly thread: string;
  readonly line: string;
  readonly checkpoint: number;
}

/** The idempotency key is there only where it is not the one that the place of the effect gives. */
type FoldedEffect = readonly [
  task: string,
  key: string,
  kind: EffectRow["kind"],
  name: string,
  effect: EffectRow["effect"],
  state: EffectRow["state"],
  attempts: number,
  startedAt: number,
  endedAt: number | null,
  stage: string | null,
  idempotencyKey?: string,
];

type Folded = readonly [step: number, ...effects: readonly FoldedEffect[]];

export const nothingFolded: FoldedColumns = { effects: null, effects_sum: null };

/** Whether all that is left of an effect after its step can stand in the row of a checkpoint. Names that rows refuse are left to them. */
export function isToldOnly({ effect, args, task, key }: EffectRow): boolean {
  return effect !== "once" && args === undefined && isWellFormed(task) && isWellFormed(key);
}

export function foldedColumns(place: FoldedPlace, step: number, effects: readonly EffectRow[]): FoldedColumns {
  if (effects.length === 0) return nothingFolded;
  const folded: Folded = [step, ...effects.map((effect) => folding(place, effect))];
  const text = JSON.stringify(folded);
  return { effects: text, effects_sum: sumOf(place, text) };
}

function folding(place: FoldedPlace, row: EffectRow): FoldedEffect {
  const { task, key, kind, name, effect, state, attempts, idempotencyKey, startedAt, endedAt, stage } = row;
  const folded = [task, key, kind, name, effect, state, attempts, startedAt, endedAt ?? null, stage ?? null] as const;
  return idempotencyKey === usualKey(place, task, key) ? folded : [...folded, idempotencyKey];
}

/** What a checkpoint folded, as it was written. Throws `store_corrupt` for any other. */
export function readFolded(place: FoldedPlace, { effects, effects_sum: sum }: FoldedColumns): readonly EffectRow[] {
  if (effects === null && sum === null) return [];
  if (effects === null || sumOf(place, effects) !== sum)
    throw corrupt(`the effects that checkpoint ${place.checkpoint} folded are not what was written`, {
      thread: place.thread,
      branch: place.line,
    });
  const [step, ...rows] = JSON.parse(effects) as Folded;
  // Of several with one place the last counts, as in rows.
  const byPlace = new Map<string, EffectRow>();
  for (const [task, key, kind, name, effect, state, attempts, startedAt, endedAt, stage, idempotencyKey] of rows)
    byPlace.set(JSON.stringify([task, key]), {
      step,
      task,
      key,
      kind,
      name,
      effect,
      state,
      attempts,
      idempotencyKey: idempotencyKey ?? usualKey(place, task, key),
      startedAt,
      ...(endedAt === null ? {} : { endedAt }),
      ...(stage === null ? {} : { stage }),
    });
  return [...byPlace.values()];
}

/**
 * The effects that checkpoints of a line folded, those above `after` up to `at`, get rows of their own where their step is not
 * before `firstStep`: their checkpoints are about to go, and they stay.
 */
export function createUnfolding(
  db: Database,
  effects: EffectRows,
): (place: LineAt, after: number, at: number, firstStep: number) => void {
  const foldedBetween = db.prepare<[number, number, number], FoldedColumns & { checkpoint: number }>(
    "SELECT key & 0xffffff AS checkpoint, effects, effects_sum FROM checkpoints WHERE key > ? AND key <= ?" +
      " AND step > ? AND (effects IS NOT NULL OR effects_sum IS NOT NULL) ORDER BY key",
  );
  return (place, after, at, firstStep) => {
    const { thread, line } = place;
    for (const columns of foldedBetween.all(keyAt(line.key, after), keyAt(line.key, at), firstStep))
      for (const row of readFolded({ thread, line: line.name, checkpoint: columns.checkpoint }, columns))
        if (row.step >= firstStep) effects.add(place, row);
  };
}

function usualKey({ thread, line }: FoldedPlace, task: string, key: string): string {
  return `${thread}/${line}/${task}/${key}`;
}

function sumOf({ line, checkpoint }: FoldedPlace, text: string): number {
  return crc32(`${line} ${checkpoint}${text}`);
}
