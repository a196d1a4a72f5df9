/** Checkpoints and events of the memory store. */

import type { ChannelRows } from "../channel-rows.ts";
import type { CheckpointRow, DeltaRow } from "../checkpoint.ts";
import type { ClaimedRows } from "../claimed-rows.ts";
import type { GraphVersion } from "../export/thread-export.ts";
import { checkFilter, createUnknownCheckpointError, isBase, isChildNamespace } from "../rules.ts";
import type { CheckpointWithDeltas, CheckpointWrite, Store, StoredEvent } from "../store.ts";
import { findNamespace, type StoredNamespace, type Thread } from "./memory-thread.ts";

export function appendCheckpoint(
  thread: Thread,
  namespace: StoredNamespace,
  { row, deltas }: CheckpointWrite,
  writtenBy: GraphVersion,
): void {
  const bases = deltas.map((delta) => ({ ...delta, base: isBase(delta) }));
  const saved = { checkpoint: { ...row, branch: namespace.name, deltas: bases }, writtenBy, namespace };
  namespace.checkpoints.push(saved);
  thread.checkpoints.set(row.id, saved);
  thread.namespaces.set(namespace.name, namespace);
  thread.checkpoint = row.id;
}

/** Lists the checkpoints of a branch and its ancestors, newest first. */
export function listHistory(
  thread: Thread | undefined,
  page: Parameters<Store["history"]>[1],
): readonly CheckpointWithDeltas[] {
  checkFilter("history", page, ["branch", "before"]);
  const { before = Number.POSITIVE_INFINITY } = page;
  return listCheckpoints(findNamespace(thread, page.branch))
    .filter((checkpoint) => checkpoint.id < before)
    .slice(0, page.limit);
}

/** Returns the channels at a checkpoint. Throws `unknown_checkpoint`. */
export function loadChannels(thread: Thread | undefined, id: string, checkpoint: number): readonly ChannelRows[] {
  const found = thread?.checkpoints.get(checkpoint);
  if (found === undefined) throw createUnknownCheckpointError(id, checkpoint);
  return toChannelRows(listChanges(found.namespace, checkpoint));
}

/** Lists the checkpoints of all namespaces and the durable events, by sequence number. */
export function listEvents(thread: Thread | undefined, page: Parameters<Store["events"]>[1]): readonly StoredEvent[] {
  checkFilter("events", page, ["after", "from"]);
  const checkpoints = [...(thread?.checkpoints.values() ?? [])].map(({ checkpoint }) => ({ checkpoint }));
  const durableEvents = (thread?.events ?? []).map((durableEvent) => ({ durableEvent }));
  const getSeq = (event: StoredEvent): number =>
    "durableEvent" in event ? event.durableEvent.seq : event.checkpoint.seq;
  return [...checkpoints, ...durableEvents]
    .filter((event) => getSeq(event) > page.after)
    .sort((one, other) => getSeq(one) - getSeq(other))
    .slice(0, page.limit);
}

export function toCheckpointRow(checkpoint: CheckpointWithDeltas | undefined): CheckpointRow | undefined {
  if (checkpoint === undefined) return undefined;
  const { deltas: _, ...row } = checkpoint;
  return row;
}

/** Lists all checkpoints from the head of a namespace back through its ancestors, newest first. */
function listCheckpoints(namespace: StoredNamespace | undefined): readonly CheckpointWithDeltas[] {
  const found: CheckpointWithDeltas[] = [];
  let until = Number.POSITIVE_INFINITY;
  for (let each = namespace; each !== undefined; until = each.from ?? 0, each = each.origin) {
    for (const { checkpoint } of each.checkpoints.toReversed()) if (checkpoint.id <= until) found.push(checkpoint);
  }
  return found;
}

/** Lists the changes up to a checkpoint, newest first, including deltas retained from pruned ranges. */
function listChanges(
  namespace: StoredNamespace,
  checkpoint: number,
): readonly { readonly deltas: readonly DeltaRow[] }[] {
  const found: { readonly id: number; readonly deltas: readonly DeltaRow[] }[] = [...listCheckpoints(namespace)];
  let until = checkpoint;
  for (
    let each: StoredNamespace | undefined = namespace;
    each !== undefined;
    until = Math.min(until, each.from ?? 0), each = each.origin
  ) {
    const retained = each.prunedRanges.flatMap(({ deltas }) => deltas).filter((delta) => delta.checkpoint <= until);
    for (const { checkpoint: id, ...delta } of retained) found.push({ id, deltas: [delta] });
  }
  return found.filter(({ id }) => id <= checkpoint).sort((one, other) => other.id - one.id);
}

function toChannelRows(newestFirst: readonly { readonly deltas: readonly DeltaRow[] }[]): readonly ChannelRows[] {
  const rows = new Map<string, DeltaRow[]>();
  for (const { deltas } of newestFirst) {
    for (const delta of deltas) {
      const known = rows.get(delta.channel) ?? [];
      if (known[0]?.base !== true) rows.set(delta.channel, [delta, ...known]);
    }
  }
  return [...rows].map(([channel, deltas]) => ({ channel, deltas: deltas.map(({ kind, text }) => ({ kind, text })) }));
}

/** Loads the rows of the newest checkpoint of a claimed branch. */
export function loadClaimedRows(
  thread: Thread,
  { effects, interrupts }: StoredNamespace,
  { id, step }: CheckpointRow,
): ClaimedRows {
  return {
    state: loadChannels(thread, thread.id, id),
    effects: [...(effects.get(step)?.values() ?? [])],
    interrupts: [...interrupts.values()].map(({ row }) => row),
    isOnlyBranch: [...thread.namespaces.keys()].filter((name) => !isChildNamespace(name)).length === 1,
  };
}
