/**
 * Retention: planning and deletion in steps of bounded work, each in its own transaction, so that the event loop and
 * other writers run in between. A deleting step first checks that its plan is still valid; otherwise the thread is
 * planned again. So a crash between two steps leaves a consistent thread.
 */
import { type PrunedDelta, type PruneWrite, retentionRules, storeRules } from "@statewright/core/store";
import type { Database } from "better-sqlite3";
import { maxCheckpointId, toRowKey } from "../file/schema.ts";
import type { Reader } from "../read/reader.ts";
import { threadHeadCheckpoint } from "../read/thread-head.ts";
import type { EffectRows } from "../rows/effect-rows.ts";
import { createUnfolder } from "../rows/folded-effects.ts";
import type { Eraser } from "../rows/thread-tables.ts";
import type { PrunedRanges } from "./pruned-ranges.ts";

/**
 * One step of the work. `run` is called inside a read transaction, inside a write transaction, or outside of any, by
 * `kind`.
 */
export interface PruneStep {
  readonly kind: "reads" | "writes" | "thinks";
  readonly run: () => void;
}

/** Maximum number of rows per read step. */
const rowsPerStep = 2_000;

/** Maximum number of checkpoints, or events, per write step. */
const checkpointsPerStep = 100;
const eventsPerStep = 1_000;

/** Maximum number of plans per call when other writers keep invalidating the plan; the next call continues. */
const maxRounds = 8;

interface NamespaceColumns {
  readonly key: number;
  readonly name: string;
  readonly origin: number | null;
  readonly run: number | null;
  readonly once: number;
  readonly status: Parameters<typeof retentionRules.isUnfinished>[0] | null;
}

interface CheckpointHead extends Omit<retentionRules.RetainedCheckpoint, "run"> {
  readonly run: number | string;
}

/** Namespace loaded for planning. */
interface LoadedNamespace extends retentionRules.RetainedNamespace {
  readonly key: number;
  readonly checkpoints: retentionRules.RetainedCheckpoint[];
}

/**
 * Creates the function that prunes old checkpoints of a thread step by step, and returns the number of removed
 * checkpoints.
 */
export function createRetention(
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
): (write: PruneWrite) => Generator<PruneStep, number> {
  const keyOfThread = db.prepare<[string], number>("SELECT key FROM threads WHERE id = ?").pluck();
  const newestOfThread = db
    .prepare<[number], number>("SELECT " + threadHeadCheckpoint + " FROM threads t WHERE t.key = ?")
    .pluck();
  const namespacesOfThread = db.prepare<[number, string, number], NamespaceColumns>(
    "SELECT b.key, b.name, b.origin, b.run, r.status, EXISTS (SELECT 1 FROM effects e INDEXED BY once_effects" +
      " WHERE e.branch = b.key AND e.effect = 'once') AS once" +
      " FROM branches b LEFT JOIN runs r ON r.key = b.run WHERE b.thread = ? AND b.name > ? ORDER BY b.name LIMIT ?",
  );
  const checkpointsOfNamespace = db.prepare<[number, number, number], CheckpointHead>(
    "SELECT key & 0xffffff AS id, at, step, seq, run, source FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?",
  );
  const namespaceByName = db
    .prepare<[number, string], number>("SELECT key FROM branches WHERE thread = ? AND name = ?")
    .pluck();
  const countBetween = db
    .prepare<[number, number], number>("SELECT count(*) FROM checkpoints WHERE key > ? AND key <= ?")
    .pluck();
  const forksBetween = db
    .prepare<[number, number, number], number>(
      "SELECT 1 FROM branches INDEXED BY branches_by_origin WHERE parent = ? AND origin > ? AND origin <= ? LIMIT 1",
    )
    .pluck();
  const unfold = createUnfolder(db, effects);
  const oldestOf = db.prepare<[number, number], { key: number; step: number }>(
    "SELECT key, step FROM checkpoints WHERE key BETWEEN ? AND ? ORDER BY key LIMIT 1",
  );
  const atKey = db.prepare<[number], { seq: number; hash: string }>("SELECT seq, hash FROM checkpoints WHERE key = ?");
  const dropCheckpoints = db.prepare<[number, number]>("DELETE FROM checkpoints WHERE key > ? AND key <= ?");
  const dropIds = db.prepare<[number, number, number]>(
    "DELETE FROM child_checkpoints WHERE key > ? AND key <= ? AND branch = ?",
  );
  const dropEffects = db.prepare<[number, number]>(
    "DELETE FROM effects WHERE branch = ? AND step < ? AND effect <> 'once'",
  );
  const dropOnce = db.prepare<[number, number]>(
    "DELETE FROM effects WHERE branch = ? AND step < ? AND effect = 'once'",
  );
  const dropFolded = db.prepare<[number]>("UPDATE checkpoints SET effects = NULL, effects_sum = NULL WHERE key = ?");
  const dropInterrupts = db.prepare<[number, number]>("DELETE FROM interrupts WHERE branch = ? AND step < ?");
  const lastOfPage = db
    .prepare<[number, number, number], number | null>(
      "SELECT max(seq) FROM (SELECT seq FROM events WHERE thread = ? AND seq < ? ORDER BY seq LIMIT ?)",
    )
    .pluck();
  const dropEvents = db.prepare<[number, number]>("DELETE FROM events WHERE thread = ? AND seq <= ?");

  /**
   * Loads the namespaces of a thread and their checkpoints page by page, up to the newest checkpoint at the first
   * page: a run started in between is unknown, but its possible origin is the newest checkpoint of that time.
   */
  function* loadNamespaces(
    thread: string,
  ): Generator<PruneStep, { readonly key: number; readonly namespaces: readonly LoadedNamespace[] }> {
    const namespaces: LoadedNamespace[] = [];
    let [key, newest] = [0, 0];
    for (let [after, isLast] = ["", false]; !isLast; ) {
      yield {
        kind: "reads",
        run: () => {
          const found = keyOfThread.get(thread);
          if (found === undefined) throw storeRules.createUnknownThreadError(thread);
          if (key === 0) newest = newestOfThread.get(found) ?? 0;
          key = found;
          const page = namespacesOfThread.all(key, after, rowsPerStep);
          isLast = page.length < rowsPerStep;
          after = page.at(-1)?.name ?? after;
          for (const namespace of page) namespaces.push(toLoadedNamespace(namespace));
        },
      };
    }
    for (let [next, after] = [0, 0]; next < namespaces.length; ) {
      yield {
        kind: "reads",
        run: () => {
          for (let room = rowsPerStep; room > 0 && next < namespaces.length; ) {
            const namespace = namespaces[next] as LoadedNamespace;
            const page = checkpointsOfNamespace.all(
              toRowKey(namespace.key, after + 1),
              toRowKey(namespace.key, newest),
              room,
            );
            for (const row of page) namespace.checkpoints.push({ ...row, run: String(row.run) });
            const isRead = page.length < room;
            // A namespace without checkpoints counts too: there may be very many.
            room -= page.length + 1;
            after = isRead ? 0 : (page.at(-1)?.id ?? 0);
            if (isRead) next += 1;
          }
        },
      };
    }
    return { key, namespaces };
  }

  function toLoadedNamespace({ key, name, origin, run, status, once }: NamespaceColumns): LoadedNamespace {
    return {
      key,
      name,
      from: origin ?? undefined,
      unfinishedRun: retentionRules.isUnfinished(status ?? undefined) ? String(run) : undefined,
      hasOnceEffects: once === 1,
      checkpoints: [],
    };
  }

  /** Deletes one slice; false without any deletion if the plan is no longer valid. */
  function removeSlice(write: PruneWrite, thread: number, slice: readonly retentionRules.NamespaceSlice[]): boolean {
    const namespaces = slice.map((each) => ({ ...each, key: namespaceByName.get(thread, each.name) }));
    if (!namespaces.every((namespace) => namespace.key !== undefined && isUnchanged(namespace.key, namespace)))
      return false;
    for (const { key = 0, name, isRemoved, firstOnce, after, ids } of namespaces) {
      if (isRemoved) {
        eraser.eraseNamespace(thread, key);
        continue;
      }
      pruneRange(write, thread, { key, name }, after, ids.at(-1) ?? after);
      const oldest = oldestOf.get(toRowKey(key, 0), toRowKey(key, maxCheckpointId));
      const firstStep = oldest?.step ?? 0;
      if (oldest !== undefined) dropFolded.run(oldest.key);
      dropEffects.run(key, firstStep);
      dropOnce.run(key, Math.min(firstStep, firstOnce));
      dropInterrupts.run(key, firstStep);
    }
    return true;
  }

  /**
   * Returns true if the planned rows are unchanged: no fork from a planned checkpoint, no removal within or before
   * the range, and no write to a namespace planned for deletion.
   */
  function isUnchanged(namespaceKey: number, { isRemoved, after, ids }: retentionRules.NamespaceSlice): boolean {
    const at = ids.at(-1) ?? after;
    if (forksBetween.get(namespaceKey, after, at) !== undefined) return false;
    if (after > 0 && atKey.get(toRowKey(namespaceKey, after)) === undefined) return false;
    return (
      countBetween.get(toRowKey(namespaceKey, after), toRowKey(namespaceKey, isRemoved ? maxCheckpointId : at)) ===
      ids.length
    );
  }

  function pruneRange(
    write: PruneWrite,
    thread: number,
    namespace: { readonly key: number; readonly name: string },
    after: number,
    at: number,
  ): void {
    const last = atKey.get(toRowKey(namespace.key, at));
    if (last === undefined) return;
    const context = { thread: write.thread, namespace, cipher: reader.getCipher(write.thread) };
    const before = prunedRanges.listDeltas(context, after, at);
    const deltas = [...groupByChannel(before).values()].flatMap((rows) => write.merge(rows));
    prunedRanges.put(context, after, { id: at, seq: last.seq, deltas }, { hash: last.hash, before });
    // The oldest remaining checkpoint can be before or after the pruned range.
    const { step = Number.POSITIVE_INFINITY } =
      oldestOf.get(toRowKey(namespace.key, 0), toRowKey(namespace.key, after)) ??
      oldestOf.get(toRowKey(namespace.key, at + 1), toRowKey(namespace.key, maxCheckpointId)) ??
      {};
    unfold(context, after, at, step);
    dropCheckpoints.run(toRowKey(namespace.key, after), toRowKey(namespace.key, at));
    if (storeRules.isChildNamespace(namespace.name))
      dropIds.run(toRowKey(thread, after), toRowKey(thread, at), namespace.key);
  }

  /** Deletes the events before a sequence number, page by page. */
  function* deleteEvents(thread: number, firstSeq: number): Generator<PruneStep, void> {
    for (let isFinished = false; !isFinished; ) {
      yield {
        kind: "writes",
        run: () => {
          const last = lastOfPage.get(thread, firstSeq, eventsPerStep) ?? undefined;
          if (last === undefined) isFinished = true;
          else dropEvents.run(thread, last);
        },
      };
    }
  }

  return function* prune(write) {
    const limit = write.limit ?? Number.POSITIVE_INFINITY;
    let removed = 0;
    for (let [round, isInvalid] = [0, true]; isInvalid && round < maxRounds; round++) {
      isInvalid = false;
      const { key, namespaces } = yield* loadNamespaces(write.thread);
      const steps = retentionRules.planRetentionInSteps(namespaces, write, limit - removed);
      let plan = steps.next();
      for (; plan.done !== true; plan = steps.next()) yield { kind: "thinks", run: () => undefined };
      for (const slice of retentionRules.splitPlan(plan.value, checkpointsPerStep)) {
        yield {
          kind: "writes",
          run: () => {
            isInvalid = !removeSlice(write, key, slice);
          },
        };
        if (isInvalid) break;
        for (const { ids } of slice) removed += ids.length;
      }
      if (!isInvalid && plan.value.removed > 0) yield* deleteEvents(key, plan.value.firstSeq);
    }
    return removed;
  };
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
