/**
 * Retention: planning and deletion in steps of bounded work, each in its own transaction, so that the event loop and
 * other writers run in between. A deleting step first checks that its plan is still valid; otherwise the thread is
 * planned again. So a crash between two steps leaves a consistent thread.
 */

import { type PrunedDelta, type PruneWrite, retentionRules, storeRules } from "@statewright/core/store";
import type { Database } from "../driver/database.ts";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import type { Reader } from "../read/reader.ts";
import type { EffectRows } from "../rows/effect-rows.ts";
import type { Eraser } from "../rows/thread-tables.ts";
import { createUnfolder } from "../rows/unfolder.ts";
import type { PrunedRanges } from "./pruned-ranges.ts";
import { type PruneStep, RetentionPlanRows } from "./retention-plan-rows.ts";

/** Maximum number of checkpoints, or events, per write step. */
const checkpointsPerStep = 100;

const eventsPerStep = 1_000;

/** Maximum number of plans per call when other writers keep invalidating the plan; the next call continues. */
const maxRounds = 8;

function prepareStatements(db: Database) {
  return {
    namespaceByName: db
      .prepare<[number, string], number>("SELECT key FROM branches WHERE thread = ? AND name = ?")
      .pluck(),
    countBetween: db
      .prepare<[number, number], number>("SELECT count(*) FROM checkpoints WHERE key > ? AND key <= ?")
      .pluck(),
    forksBetween: db
      .prepare<[number, number, number], number>(
        "SELECT 1 FROM branches INDEXED BY branches_by_origin WHERE parent = ? AND origin > ? AND origin <= ? LIMIT 1",
      )
      .pluck(),
    oldestOf: db.prepare<[number, number], { key: number; step: number }>(
      "SELECT key, step FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1",
    ),
    atKey: db.prepare<[number], { seq: number; hash: string }>("SELECT seq, hash FROM checkpoints WHERE key = ?"),
    dropCheckpoints: db.prepare<[number, number]>("DELETE FROM checkpoints WHERE key > ? AND key <= ?"),
    dropIds: db.prepare<[number, number, number]>(
      "DELETE FROM child_checkpoints WHERE key > ? AND key <= ? AND branch = ?",
    ),
    dropEffects: db.prepare<[number, number]>("DELETE FROM effects WHERE branch = ? AND step < ? AND effect <> 'once'"),
    dropOnce: db.prepare<[number, number]>("DELETE FROM effects WHERE branch = ? AND step < ? AND effect = 'once'"),
    dropFolded: db.prepare<[number]>("UPDATE checkpoints SET effects = NULL, effects_sum = NULL WHERE key = ?"),
    dropInterrupts: db.prepare<[number, number]>("DELETE FROM interrupts WHERE branch = ? AND step < ?"),
    lastOfPage: db
      .prepare<[number, number, number], number | null>(
        "SELECT max(seq) FROM (SELECT seq FROM events WHERE thread = ? AND seq < ? ORDER BY seq LIMIT ?)",
      )
      .pluck(),
    dropEvents: db.prepare<[number, number]>("DELETE FROM events WHERE thread = ? AND seq <= ?"),
  };
}

/** Checkpoints of a namespace above `after`, up to `until`. */
interface KeyRange {
  readonly key: number;
  readonly name: string;
  readonly after: number;
  readonly until: number;
}

/** Prunes old checkpoints of threads step by step. */
export class Retention {
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #prunedRanges: PrunedRanges;
  readonly #eraser: Eraser;
  readonly #planRows: RetentionPlanRows;
  readonly #reader: Reader;
  readonly #unfold: ReturnType<typeof createUnfolder>;

  constructor(
    db: Database,
    {
      reader,
      prunedRanges,
      eraser,
      effects,
    }: {
      readonly reader: Reader;
      readonly prunedRanges: PrunedRanges;
      readonly eraser: Eraser;
      readonly effects: EffectRows;
    },
  ) {
    this.#sql = prepareStatements(db);
    this.#planRows = new RetentionPlanRows(db);
    this.#unfold = createUnfolder(db, effects);
    this.#reader = reader;
    this.#prunedRanges = prunedRanges;
    this.#eraser = eraser;
  }

  /** Prunes old checkpoints of a thread step by step; returns the number of removed checkpoints. */
  *prune(write: PruneWrite): Generator<PruneStep, number> {
    const limit = write.limit ?? Number.POSITIVE_INFINITY;
    let removed = 0;
    for (let [round, isInvalid] = [0, true]; isInvalid && round < maxRounds; round++) {
      isInvalid = false;
      const { key, namespaces } = yield* this.#planRows.load(write.thread);
      const steps = retentionRules.planRetentionInSteps(namespaces, write, limit - removed);
      let plan = steps.next();
      for (; plan.done !== true; plan = steps.next()) yield { kind: "plans", run: () => undefined };
      for (const slice of retentionRules.splitPlan(plan.value, checkpointsPerStep)) {
        yield {
          kind: "writes",
          run: () => {
            isInvalid = !this.#removeSlice(write, key, slice);
          },
        };
        if (isInvalid) break;
        for (const { ids } of slice) removed += ids.length;
      }
      if (!isInvalid && plan.value.removed > 0) yield* this.#deleteEvents(key, plan.value.firstSeq);
    }
    return removed;
  }

  /** Deletes a single slice; false without any deletion if the plan is no longer valid. */
  #removeSlice(write: PruneWrite, thread: number, slice: readonly retentionRules.NamespaceSlice[]): boolean {
    const namespaces = slice.map((each) => ({ ...each, key: this.#sql.namespaceByName.get(thread, each.name) }));
    if (!namespaces.every((namespace) => namespace.key !== undefined && this.#isUnchanged(namespace.key, namespace)))
      return false;
    for (const { key = 0, name, isRemoved, firstOnce, after, ids } of namespaces) {
      if (isRemoved) {
        this.#eraser.eraseNamespace(thread, key);
        continue;
      }
      this.#pruneRange(write, thread, { key, name, after, until: ids.at(-1) ?? after });
      const oldest = this.#sql.oldestOf.get(toRowKey(key, 0), toRowKey(key, maxCheckpointId));
      const firstStep = oldest?.step ?? 0;
      if (oldest !== undefined) this.#sql.dropFolded.run(oldest.key);
      this.#sql.dropEffects.run(key, firstStep);
      this.#sql.dropOnce.run(key, Math.min(firstStep, firstOnce));
      this.#sql.dropInterrupts.run(key, firstStep);
    }
    return true;
  }

  /**
   * Returns true if the planned rows are unchanged: no fork from a planned checkpoint, no removal within or before
   * the range, and no write to a namespace planned for deletion.
   */
  #isUnchanged(namespaceKey: number, { isRemoved, after, ids }: retentionRules.NamespaceSlice): boolean {
    const at = ids.at(-1) ?? after;
    if (this.#sql.forksBetween.get(namespaceKey, after, at) !== undefined) return false;
    if (after > 0 && this.#sql.atKey.get(toRowKey(namespaceKey, after)) === undefined) return false;
    return (
      this.#sql.countBetween.get(
        toRowKey(namespaceKey, after),
        toRowKey(namespaceKey, isRemoved ? maxCheckpointId : at),
      ) === ids.length
    );
  }

  #pruneRange(write: PruneWrite, thread: number, { after, until, ...namespace }: KeyRange): void {
    const last = this.#sql.atKey.get(toRowKey(namespace.key, until));
    if (last === undefined) return;
    const context = { thread: write.thread, namespace, cipher: this.#reader.ciphers.get(write.thread) };
    const before = this.#prunedRanges.listDeltas(context, after, until);
    const deltas = [...groupByChannel(before).values()].flatMap((rows) => write.merge(rows));
    this.#prunedRanges.put(context, after, { id: until, seq: last.seq, deltas }, { hash: last.hash, before });
    // The oldest remaining checkpoint can be before or after the pruned range.
    const { step = Number.POSITIVE_INFINITY } =
      this.#sql.oldestOf.get(toRowKey(namespace.key, 0), toRowKey(namespace.key, after)) ??
      this.#sql.oldestOf.get(toRowKey(namespace.key, until + 1), toRowKey(namespace.key, maxCheckpointId)) ??
      {};
    this.#unfold(context, after, until, step);
    this.#sql.dropCheckpoints.run(toRowKey(namespace.key, after), toRowKey(namespace.key, until));
    if (storeRules.isChildNamespace(namespace.name))
      this.#sql.dropIds.run(toRowKey(thread, after), toRowKey(thread, until), namespace.key);
  }

  /** Deletes the events before a sequence number, page by page. */
  *#deleteEvents(thread: number, firstSeq: number): Generator<PruneStep, void> {
    for (let isFinished = false; !isFinished; ) {
      yield {
        kind: "writes",
        run: () => {
          const last = this.#sql.lastOfPage.get(thread, firstSeq, eventsPerStep) ?? undefined;
          if (last === undefined) isFinished = true;
          else this.#sql.dropEvents.run(thread, last);
        },
      };
    }
  }
}

function groupByChannel(rows: readonly PrunedDelta[]): ReadonlyMap<string, readonly PrunedDelta[]> {
  const groups = new Map<string, PrunedDelta[]>();
  for (const row of rows) {
    const group = groups.get(row.channel);
    if (group === undefined) groups.set(row.channel, [row]);
    else group.push(row);
  }
  return groups;
}
