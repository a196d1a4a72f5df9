/**
 * Effects that started and ended within the superstep folded by a commit. All effects of the step are stored as one
 * text in the row of the folding checkpoint: separate rows would cost two more pages per commit, for data that is
 * only listed later.
 */
import { crc32 } from "node:zlib";
import type { EffectRow } from "@statewright/core/store";
import { createCorruptError } from "./corrupt-error.ts";
import { fromUsageColumns, toUsageColumns, type UsageColumns } from "./usage-columns.ts";
import { isWellFormed } from "./well-formed.ts";

/**
 * Columns of a checkpoint for its folded effects; null if the checkpoint folded no effects, or if the effects have
 * rows of their own.
 */
export interface FoldedColumns {
  readonly effects: string | null;
  readonly effects_sum: number | null;
}

/** Location of the folding checkpoint. */
export interface CheckpointLocation {
  readonly thread: string;
  readonly namespace: string;
  readonly checkpoint: number;
}

/** What few effects have: kept out of the text of the others. */
type FoldedExtras = readonly [
  usage: UsageColumns | null,
  processes?: number | null,
  attemptLog?: EffectRow["attemptLog"] | null,
];

/**
 * Short, because every superstep has this text: a time is relative to an earlier one, and 0 stands for an absent text.
 * The idempotency key is stored only if it differs from the default key of the effect's location and the salt.
 */
type FoldedEffect = readonly [
  task: string,
  key: string,
  kind: EffectRow["kind"],
  name: string,
  effect: EffectRow["effect"],
  state: EffectRow["state"],
  attempts: number,
  startedAt: number,
  durationMs: number | null,
  stage: string | 0,
  idempotencyKey?: string | 0,
  extras?: FoldedExtras,
];

type Folded = readonly [step: number, salt: string, ...effects: readonly FoldedEffect[]];

/** Columns of a checkpoint without folded effects. */
export const nothingFolded: FoldedColumns = { effects: null, effects_sum: null };

/**
 * Returns true if the row of a checkpoint can store everything of an effect after its step. Names that are invalid in
 * rows are excluded, so that the row write refuses them.
 */
export function isFoldable({ effect, args, task, key }: EffectRow): boolean {
  return effect !== "once" && args === undefined && isWellFormed(task) && isWellFormed(key);
}

/** Returns the columns of a checkpoint for its folded effects, each of them {@link isFoldable}. */
export function toFoldedColumns(
  location: CheckpointLocation,
  step: number,
  effects: readonly EffectRow[],
): FoldedColumns {
  if (effects.length === 0) return nothingFolded;
  const salt = findSalt(location, effects);
  const folded: Folded = [step, salt, ...effects.map((effect) => toFoldedEffect(location, salt, effect))];
  const text = JSON.stringify(folded);
  return { effects: text, effects_sum: computeSum(location, text) };
}

/** Finds the random part of the idempotency keys of the thread in the key of an effect; `""` for none. */
function findSalt({ thread, namespace }: CheckpointLocation, effects: readonly EffectRow[]): string {
  for (const { task, key, idempotencyKey } of effects) {
    const [start, end] = [`${thread}/`, `/${namespace}/${task}/${key}`];
    if (
      idempotencyKey.startsWith(start) &&
      idempotencyKey.endsWith(end) &&
      idempotencyKey.length > start.length + end.length
    )
      return idempotencyKey.slice(start.length, -end.length);
  }
  return "";
}

function toFoldedEffect(location: CheckpointLocation, salt: string, row: EffectRow): FoldedEffect {
  const { task, key, kind, name, effect, state, attempts, idempotencyKey, startedAt, endedAt, stage } = row;
  const extras = toFoldedExtras(row);
  const durationMs = endedAt === undefined ? null : endedAt - startedAt;
  const folded = [task, key, kind, name, effect, state, attempts, startedAt, durationMs, stage ?? 0] as const;
  const hasDefaultKey = idempotencyKey === createDefaultKey(location, salt, { task, key });
  if (extras !== undefined) return [...folded, hasDefaultKey ? 0 : idempotencyKey, extras];
  return hasDefaultKey ? folded : [...folded, idempotencyKey];
}

function toFoldedExtras(row: EffectRow): FoldedExtras | undefined {
  const { processes, attemptLog } = row;
  const usage = toUsageColumns(row) ?? null;
  if (processes === undefined && attemptLog === undefined) return usage === null ? undefined : [usage];
  return [usage, processes ?? null, attemptLog ?? null];
}

function fromFoldedExtras([usage, processes = null, attemptLog = null]: FoldedExtras): Partial<EffectRow> {
  return {
    ...(usage === null ? {} : { usage: fromUsageColumns(usage) }),
    ...(processes === null ? {} : { processes }),
    ...(attemptLog === null ? {} : { attemptLog }),
  };
}

/** Reads the folded effects of a checkpoint. Throws `store_corrupt` on a checksum mismatch. */
export function readFoldedEffects(
  location: CheckpointLocation,
  { effects, effects_sum: sum }: FoldedColumns,
): readonly EffectRow[] {
  if (effects === null && sum === null) return [];
  if (effects === null || computeSum(location, effects) !== sum)
    throw createCorruptError(`the folded effects of checkpoint ${location.checkpoint} do not match their checksum`, {
      thread: location.thread,
      branch: location.namespace,
    });
  const [step, salt, ...rows] = JSON.parse(effects) as Folded;
  // The last of several effects with the same key counts, as in rows.
  const byKey = new Map<string, EffectRow>();
  for (const [task, key, kind, name, effect, state, attempts, startedAt, durationMs, stage, ownKey = 0, more] of rows)
    byKey.set(JSON.stringify([task, key]), {
      step,
      task,
      key,
      kind,
      name,
      effect,
      state,
      attempts,
      idempotencyKey: ownKey === 0 ? createDefaultKey(location, salt, { task, key }) : ownKey,
      startedAt,
      ...(durationMs === null ? {} : { endedAt: startedAt + durationMs }),
      ...(stage === 0 ? {} : { stage }),
      ...(more === undefined ? {} : fromFoldedExtras(more)),
    });
  return [...byKey.values()];
}

function createDefaultKey(
  { thread, namespace }: CheckpointLocation,
  salt: string,
  { task, key }: Pick<EffectRow, "task" | "key">,
): string {
  return salt === "" ? `${thread}/${namespace}/${task}/${key}` : `${thread}/${salt}/${namespace}/${task}/${key}`;
}

function computeSum({ namespace, checkpoint }: CheckpointLocation, text: string): number {
  return crc32(`${namespace} ${checkpoint}${text}`);
}
