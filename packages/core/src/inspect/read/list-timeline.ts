/** Timeline of a thread, also from a store that has no list of supersteps. */
import type { CheckpointRow } from "../../checkpoint/checkpoint.ts";
import { getReducedStep, isChildNamespace, isNamespaceWithin } from "../../checkpoint/rules.ts";
import type { CheckpointWithDeltas, StoredEvent, StoreReads } from "../../checkpoint/store.ts";
import type { SuperstepPage, SuperstepRow, TimelineEntry } from "../../checkpoint/superstep.ts";

const pageSize = 100;

/** Lists a page of supersteps and durable events. Without `supersteps`, reads every event of the thread. */
export async function listTimeline(
  reads: StoreReads,
  thread: string,
  page: SuperstepPage,
): Promise<readonly TimelineEntry[]> {
  if (reads.supersteps !== undefined) return await reads.supersteps(thread, page);
  const { branch, after, before = Number.POSITIVE_INFINITY, limit } = page;
  const parts = branch === undefined ? undefined : await listBranchParts(reads, thread, branch);
  const found = (await listEvents(reads, thread, after ?? 0)).filter(
    (event) => getSeq(event) < before && (parts === undefined || parts.some((part) => isInPart(event, part))),
  );
  const rows = after === undefined ? found.slice(-limit).reverse() : found.slice(0, limit);
  return await Promise.all(
    rows.map(async (row) =>
      "checkpoint" in row ? { superstep: await toSuperstep(reads, thread, row.checkpoint) } : row,
    ),
  );
}

/** Returns the superstep of a checkpoint. */
export async function getSuperstepRow(
  reads: StoreReads,
  thread: string,
  { id, seq, branch }: Pick<CheckpointRow, "id" | "seq" | "branch">,
): Promise<SuperstepRow | undefined> {
  const [entry] = await listTimeline(reads, thread, { branch, before: seq + 1, limit: 1 });
  return entry !== undefined && "superstep" in entry && entry.superstep.checkpoint.id === id
    ? entry.superstep
    : undefined;
}

/** Part of a branch: a namespace with its last checkpoint id and sequence number that belong to the branch. */
export interface BranchPart {
  readonly name: string;
  readonly until: number;
  readonly untilSeq: number;
}

/** Lists a branch or child namespace and its ancestors, each up to the fork of the next; empty for an unknown name. */
export async function listBranchParts(reads: StoreReads, thread: string, name: string): Promise<readonly BranchPart[]> {
  // The ancestors of a branch are branches.
  const children = isChildNamespace(name) ? await reads.namespaces(thread, "child") : [];
  const namespaces = new Map(
    [...(await reads.namespaces(thread, "branch")), ...children].map((each) => [each.name, each]),
  );
  const parts: BranchPart[] = [];
  let [until, untilSeq] = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
  for (let each = namespaces.get(name); each !== undefined; ) {
    parts.push({ name: each.name, until, untilSeq });
    const origin = each.from === undefined ? undefined : await reads.checkpoint(thread, each.from);
    if (origin === undefined) break;
    until = Math.min(until, origin.id);
    untilSeq = Math.min(untilSeq, origin.seq);
    each = namespaces.get(origin.branch);
  }
  return parts;
}

function isInPart(event: StoredEvent, { name, until, untilSeq }: BranchPart): boolean {
  return "checkpoint" in event
    ? event.checkpoint.id <= until && isNamespaceWithin(event.checkpoint.branch, name)
    : event.durableEvent.seq <= untilSeq && event.durableEvent.branch === name;
}

async function listEvents(reads: StoreReads, thread: string, after: number): Promise<readonly StoredEvent[]> {
  const events: StoredEvent[] = [];
  for (let last = after; ; ) {
    const page = await reads.events(thread, { after: last, limit: pageSize });
    events.push(...page);
    const end = page.at(-1);
    if (end === undefined || page.length < pageSize) return events;
    last = getSeq(end);
  }
}

function getSeq(event: StoredEvent): number {
  return "checkpoint" in event ? event.checkpoint.seq : event.durableEvent.seq;
}

async function toSuperstep(
  reads: StoreReads,
  thread: string,
  { deltas, ...checkpoint }: CheckpointWithDeltas,
): Promise<SuperstepRow> {
  const parent = checkpoint.parent === undefined ? undefined : await reads.checkpoint(thread, checkpoint.parent);
  const step = getReducedStep(checkpoint, parent?.step);
  const effects = step === undefined ? [] : await reads.effects(thread, checkpoint.branch, step);
  return {
    checkpoint,
    changes: deltas.map(({ channel, kind, count = 1, text }) => ({
      channel,
      kind,
      count,
      bytes: new TextEncoder().encode(text).length,
    })),
    effects: effects.map(({ outcome: _outcome, args: _args, ...row }) => row),
  };
}
