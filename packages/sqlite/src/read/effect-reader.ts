/** Reads of effects: journal rows and folded effects. */

import type { EffectRow } from "@statewright/core/store";
import { type EffectColumns, type FoldedColumns, readEffect, readFoldedEffects } from "@statewright/store-kit";
import type { Database } from "../driver/database.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import type { NamespaceReader, NamespaceRow } from "./namespace-reader.ts";
import type { ThreadCiphers } from "./thread-ciphers.ts";

const effectColumns =
  "SELECT step, task, call, kind, name, effect, state, attempts, idempotency, started, ended, stage, args, sum, processes, attempt_log, usage, outcome FROM effects";

function prepareStatements(db: Database) {
  return {
    effectsOfNamespace: db.prepare<[number], EffectColumns>(effectColumns + " WHERE branch = ? ORDER BY step, key"),
    effectsOfStep: db.prepare<[number, number], EffectColumns>(
      effectColumns + " WHERE branch = ? AND step = ? ORDER BY key",
    ),
    foldedOfNamespace: db.prepare<[number, number], FoldedColumns & { checkpoint: number }>(
      "SELECT key & 0xffffff AS checkpoint, effects, effects_sum FROM checkpoints WHERE key BETWEEN ? AND ?" +
        " AND (effects IS NOT NULL OR effects_sum IS NOT NULL) ORDER BY key",
    ),
    newestStep: db.prepare<[number, number], { key: number; step: number }>(
      "SELECT key, step FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key DESC LIMIT 1",
    ),
  };
}

/** Reads the effects of a namespace. */
export class EffectReader {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #ciphers: ThreadCiphers;
  readonly #namespaces: NamespaceReader;

  constructor(
    db: Database,
    { ciphers, namespaces }: { readonly ciphers: ThreadCiphers; readonly namespaces: NamespaceReader },
  ) {
    this.#sql = prepareStatements(db);
    this.#ciphers = ciphers;
    this.#namespaces = namespaces;
  }

  /** Lists the effects of a namespace: of all steps, or of one. */
  list(thread: string, branch: string, step?: number): readonly EffectRow[] {
    const namespace = this.#namespaces.find(thread, branch);
    if (namespace === undefined) return [];
    const rows =
      step === undefined
        ? this.#sql.effectsOfNamespace.all(namespace.key)
        : this.#sql.effectsOfStep.all(namespace.key, step);
    const cipher = this.#ciphers.get(thread);
    const rowEffects = rows.map((columns) => readEffect(cipher, { thread, namespace: namespace.name }, columns));
    const foldedEffects = this.#listFolded(thread, namespace, step);
    return foldedEffects.length === 0 ? rowEffects : mergeEffects(foldedEffects, rowEffects);
  }

  /** Lists the effects of the step of the newest checkpoint, none of which is folded. */
  listHead(thread: string, { key, name }: NamespaceRow, step: number): readonly EffectRow[] {
    const cipher = this.#ciphers.get(thread);
    return this.#sql.effectsOfStep
      .all(key, step)
      .map((columns) => readEffect(cipher, { thread, namespace: name }, columns));
  }

  /** Lists the folded effects of a namespace: of all checkpoints, or of a step. */
  #listFolded(thread: string, namespace: NamespaceRow, step: number | undefined): readonly EffectRow[] {
    const found =
      step === undefined
        ? [toRowKey(namespace.key, 0), toRowKey(namespace.key, maxCheckpointId)]
        : this.#findFoldRange(namespace, step);
    const [from, until] = found;
    if (from === undefined || until === undefined) return [];
    return this.#sql.foldedOfNamespace
      .all(from, until)
      .flatMap((row) => readFoldedEffects({ thread, namespace: namespace.name, checkpoint: row.checkpoint }, row))
      .filter((row) => step === undefined || row.step === step);
  }

  /**
   * Returns the key of the checkpoint that folded a step, twice, as a range. Binary search: steps increase along a
   * namespace.
   */
  #findFoldRange({ key: namespaceKey }: NamespaceRow, step: number): readonly number[] {
    const newest = this.#sql.newestStep.get(toRowKey(namespaceKey, 0), toRowKey(namespaceKey, maxCheckpointId));
    if (newest === undefined || newest.step <= step) return [];
    let [low, high] = [toRowKey(namespaceKey, 0), newest.key];
    while (low < high) {
      const middle = low + Math.floor((high - low) / 2);
      const found = this.#sql.newestStep.get(low, middle);
      if (found === undefined || found.step <= step) low = middle + 1;
      else high = found.key;
    }
    return [high, high];
  }
}

/** Merges folded effects and effect rows, ordered by step; the last of several effects with the same key counts. */
export function mergeEffects<Row extends Pick<EffectRow, "step" | "task" | "key">>(
  folded: readonly Row[],
  rows: readonly Row[],
): readonly Row[] {
  const effects = new Map<string, Row>();
  for (const row of [...folded, ...rows]) effects.set(JSON.stringify([row.step, row.task, row.key]), row);
  return [...effects.values()].sort((left, right) => left.step - right.step);
}
