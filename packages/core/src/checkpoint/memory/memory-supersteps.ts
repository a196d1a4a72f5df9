/** Lists of the memory store that read no values: supersteps and namespaces. */
import type { CheckpointRow } from "../checkpoint.ts";
import { checkSuperstepPage, getReducedStep, isChildNamespace, isNamespaceWithin } from "../rules.ts";
import type { CheckpointWithDeltas } from "../store.ts";
import type { EffectSummaryRow, NamespaceSummary, SuperstepPage, SuperstepRow, TimelineEntry } from "../superstep.ts";
import type { StoredCheckpoint, StoredNamespace, Thread } from "./memory-thread.ts";
import { toCheckpointRow } from "./memory-thread.ts";

/** Lists supersteps and durable events of a thread, by sequence number. */
export function listTimeline(thread: Thread | undefined, page: SuperstepPage): readonly TimelineEntry[] {
  checkSuperstepPage(page);
  if (thread === undefined) return [];
  const { branch, after, before = Number.POSITIVE_INFINITY, limit } = page;
  const segments = branch === undefined ? undefined : listSegments(thread, branch);
  const checkpoints = [...thread.checkpoints.values()].filter(
    ({ checkpoint: { id, branch: name } }) =>
      segments?.some((segment) => id <= segment.until && isNamespaceWithin(name, segment.name)) ?? true,
  );
  const events = thread.events.filter(
    ({ seq, branch: name }) => segments?.some((segment) => seq <= segment.untilSeq && name === segment.name) ?? true,
  );
  const rows = [
    ...checkpoints.map((saved) => ({ seq: saved.checkpoint.seq, saved })),
    ...events.map((durableEvent) => ({ seq: durableEvent.seq, durableEvent })),
  ]
    .filter(({ seq }) => seq > (after ?? Number.NEGATIVE_INFINITY) && seq < before)
    .sort((one, other) => (after === undefined ? other.seq - one.seq : one.seq - other.seq))
    .slice(0, limit);
  return rows.map((row) =>
    "saved" in row ? { superstep: toSuperstep(thread, row.saved) } : { durableEvent: row.durableEvent },
  );
}

/** Lists namespaces of a thread in order of creation. */
export function listNamespaces(thread: Thread | undefined, kind: "branch" | "child"): readonly NamespaceSummary[] {
  return [...(thread?.namespaces.values() ?? [])]
    .filter(({ name }) => isChildNamespace(name) === (kind === "child"))
    .map(({ name, from, checkpoints }) => ({
      name,
      from,
      head: toCheckpointRow(checkpoints.at(-1)?.checkpoint),
      writtenBy: checkpoints.at(-1)?.writtenBy,
      checkpoints: checkpoints.length,
      bytes: checkpoints.reduce((sum, { checkpoint }) => sum + checkpoint.bytes, 0),
    }));
}

/** Part of a branch: a namespace up to the fork of the next part. */
interface Segment {
  readonly name: string;
  readonly until: number;
  readonly untilSeq: number;
}

function listSegments(thread: Thread, branch: string): readonly Segment[] {
  const segments: Segment[] = [];
  let [until, untilSeq] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (
    let each: StoredNamespace | undefined = thread.namespaces.get(branch);
    each !== undefined;
    until = Math.min(until, each.from ?? 0),
      untilSeq = Math.min(untilSeq, thread.checkpoints.get(each.from ?? 0)?.checkpoint.seq ?? 0),
      each = each.origin
  )
    segments.push({ name: each.name, until, untilSeq });
  return segments;
}

function toSuperstep(thread: Thread, { checkpoint, namespace }: StoredCheckpoint): SuperstepRow {
  const { deltas, ...row } = checkpoint;
  return { checkpoint: row, changes: deltas.map(toChange), effects: listReducedEffects(thread, row, namespace) };
}

function toChange({ channel, kind, count = 1, text }: CheckpointWithDeltas["deltas"][number]) {
  return { channel, kind, count, bytes: new TextEncoder().encode(text).length };
}

function listReducedEffects(
  thread: Thread,
  row: CheckpointRow,
  { effects }: StoredNamespace,
): readonly EffectSummaryRow[] {
  const parent = row.parent === undefined ? undefined : thread.checkpoints.get(row.parent)?.checkpoint;
  const step = getReducedStep(row, parent?.step);
  const rows = step === undefined ? [] : [...(effects.get(step)?.values() ?? [])];
  return rows.map(({ outcome: _outcome, args: _args, ...summary }) => summary);
}
