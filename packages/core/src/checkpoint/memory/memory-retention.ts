/** Retention of the memory store: applies a retention plan to a thread. */

import type { PrunedDelta } from "../export/thread-export.ts";
import {
  type CheckpointRange,
  isUnfinished,
  type NamespacePlan,
  planRetention,
  type RetainedNamespace,
} from "../retention.ts";
import type { PruneWrite } from "../store.ts";
import type { StoredNamespace, Thread } from "./memory-thread.ts";

/** Removes prunable checkpoints of a thread and returns their number. */
export function pruneMemoryThread(thread: Thread, write: PruneWrite): number {
  const namespaces = [...thread.namespaces.values()].map((namespace) => toRetainedNamespace(thread, namespace));
  const plan = planRetention(namespaces, write, write.limit ?? Number.POSITIVE_INFINITY);
  for (const { name, isRemoved, ranges, ...steps } of plan.namespaces) {
    const namespace = thread.namespaces.get(name);
    if (namespace === undefined) continue;
    for (const cut of ranges) removeRange(thread, namespace, cut, write);
    if (isRemoved) thread.namespaces.delete(name);
    else deleteSteps(namespace, steps);
  }
  if (plan.removed > 0) {
    const events = thread.events.filter(({ seq }) => seq >= plan.firstSeq);
    thread.events.splice(0, thread.events.length, ...events);
  }
  return plan.removed;
}

function toRetainedNamespace(
  { runs }: Thread,
  { name, from, run, checkpoints, effects }: StoredNamespace,
): RetainedNamespace {
  const status = runs.get(run ?? "")?.row.status;
  return {
    name,
    from,
    unfinishedRun: isUnfinished(status) ? run : undefined,
    hasOnceEffects: [...effects.values()].some((rows) => [...rows.values()].some(({ effect }) => effect === "once")),
    checkpoints: checkpoints.map(({ checkpoint }) => checkpoint),
  };
}

function removeRange(
  thread: Thread,
  namespace: StoredNamespace,
  { after, at }: CheckpointRange,
  { merge }: PruneWrite,
): void {
  const isInside = (id: number): boolean => id > after && id <= at;
  const removed = namespace.checkpoints.filter(({ checkpoint }) => isInside(checkpoint.id));
  const last = removed.at(-1)?.checkpoint;
  if (last === undefined) return;
  const rows: PrunedDelta[] = [
    ...namespace.prunedRanges.flatMap(({ deltas }) => deltas.filter(({ checkpoint }) => isInside(checkpoint))),
    ...removed.flatMap(({ checkpoint: { id, deltas } }) => deltas.map((delta) => ({ ...delta, checkpoint: id }))),
  ].toSorted((one, other) => one.checkpoint - other.checkpoint);
  const deltas = [...groupByChannel(rows).values()].flatMap((each) => merge(each));
  const pruned = namespace.prunedRanges.filter(({ id }) => !isInside(id));
  const index = pruned.findIndex(({ id }) => id > at);
  pruned.splice(index === -1 ? pruned.length : index, 0, { id: at, seq: last.seq, deltas });
  namespace.prunedRanges.splice(0, namespace.prunedRanges.length, ...pruned);
  const remaining = namespace.checkpoints.filter(({ checkpoint }) => !isInside(checkpoint.id));
  namespace.checkpoints.splice(0, namespace.checkpoints.length, ...remaining);
  for (const { checkpoint } of removed) thread.checkpoints.delete(checkpoint.id);
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

/** Deletes journal rows and interrupts of steps that no remaining checkpoint can return to. */
function deleteSteps(
  namespace: StoredNamespace,
  { firstStep, firstOnce }: Pick<NamespacePlan, "firstStep" | "firstOnce">,
): void {
  for (const [step, effects] of namespace.effects) {
    for (const [id, { effect }] of effects) if (step < (effect === "once" ? firstOnce : firstStep)) effects.delete(id);
    if (effects.size === 0) namespace.effects.delete(step);
  }
  for (const [id, { row }] of namespace.interrupts) if (row.step < firstStep) namespace.interrupts.delete(id);
}
