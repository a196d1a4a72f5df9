/** Rows for folded effects whose checkpoint is pruned. */
import { type FoldedColumns, readFoldedEffects } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { toRowKey } from "../file/schema.ts";
import type { NamespaceContext } from "../write/pruned-ranges.ts";
import type { EffectRows } from "./effect-rows.ts";

/**
 * Creates a function that writes rows for the folded effects of the checkpoints above `after` up to `at`, for steps
 * from `firstStep` on: retention is about to delete these checkpoints, but keeps the effects.
 */
export function createUnfolder(
  db: Database,
  effects: EffectRows,
): (context: NamespaceContext, after: number, at: number, firstStep: number) => void {
  const foldedBetween = db.prepare<[number, number, number], FoldedColumns & { checkpoint: number }>(
    "SELECT key & 0xffffff AS checkpoint, effects, effects_sum FROM checkpoints WHERE key > ? AND key <= ?" +
      " AND step > ? AND (effects IS NOT NULL OR effects_sum IS NOT NULL) ORDER BY key",
  );
  return (context, after, at, firstStep) => {
    const { thread, namespace } = context;
    for (const columns of foldedBetween.all(toRowKey(namespace.key, after), toRowKey(namespace.key, at), firstStep))
      for (const row of readFoldedEffects(
        { thread, namespace: namespace.name, checkpoint: columns.checkpoint },
        columns,
      ))
        if (row.step >= firstStep) effects.add(context, row);
  };
}
