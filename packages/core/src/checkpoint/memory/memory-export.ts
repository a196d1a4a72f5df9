/** Converts a thread of the memory store to a thread export and back. */

import { isDelayed } from "../delayed-run.ts";
import type { ArtifactExport, NamespaceExport, ThreadExport } from "../export/thread-export.ts";
import type { EffectRow } from "../journal.ts";
import { listGraphVersions, toThreadDetails, toVersionKey } from "../thread-rules.ts";
import {
  createNamespace,
  createThread,
  putArtifact,
  type StoredCheckpoint,
  type StoredNamespace,
  saveOutline,
  type Thread,
  type ThreadArtifacts,
  type Threads,
} from "./memory-thread.ts";

/** Exports all stored rows of a thread; with `omit` without the bodies of artifacts. */
export function toThreadExport(
  { outlines }: Threads,
  thread: Thread,
  bodies: "include" | "omit" = "include",
): ThreadExport {
  const { id, keySalt, createdAt, updatedAt, headBranch, writtenBy, seq, checkpoint, run } = thread;
  const namespaces = [...thread.namespaces.values()].map(toNamespaceExport);
  return {
    id,
    ...thread.details,
    keySalt,
    createdAt,
    updatedAt,
    headBranch,
    writtenBy,
    outlines: listGraphVersions({ namespaces, writtenBy }).flatMap((version) => {
      const outline = outlines.get(toVersionKey(version));
      return outline === undefined ? [] : [{ ...version, outline }];
    }),
    seq,
    checkpoint,
    run,
    namespaces,
    runs: [...thread.runs.values()].toSorted((one, other) => one.nth - other.nth).map(({ row }) => row),
    events: [...thread.events],
    ...(thread.requests.length === 0 ? {} : { requests: thread.requests }),
    artifacts: bodies === "omit" ? thread.artifacts.rows.map((row) => ({ row })) : toArtifactExports(thread.artifacts),
  };
}

function toArtifactExports({ rows, bodies }: ThreadArtifacts): readonly ArtifactExport[] {
  const seen = new Set<string>();
  return rows.map((row) => {
    const body = seen.has(row.key) ? undefined : bodies.get(row.key);
    seen.add(row.key);
    return body === undefined ? { row } : { row, body };
  });
}

function toNamespaceExport(namespace: StoredNamespace): NamespaceExport {
  const { name, from, run, checkpoints, prunedRanges, effects, interrupts, awaited, timers, inbox } = namespace;
  return {
    name,
    from,
    run,
    checkpoints: checkpoints.map(({ checkpoint: { deltas, ...row }, writtenBy }) => ({ row, deltas, writtenBy })),
    prunedRanges: [...prunedRanges],
    effects: [...effects].toSorted(([one], [other]) => one - other).flatMap(([, rows]) => [...rows.values()]),
    interrupts: [...interrupts.values()].map(({ row }) => row),
    awaited: [...awaited],
    timers: [...timers.values()],
    inbox,
  };
}

/** Inserts a thread from its export, without an owner. */
export function insertThread(threads: Threads, exported: ThreadExport): void {
  const thread = createThread({ ...exported, details: toThreadDetails(exported) }, exported.writtenBy);
  const namespaceOfCheckpoint = new Map(
    exported.namespaces.flatMap(({ name, checkpoints }) => checkpoints.map(({ row }) => [row.id, name])),
  );
  for (const each of exported.namespaces) {
    const origin =
      each.from === undefined ? undefined : thread.namespaces.get(namespaceOfCheckpoint.get(each.from) ?? "");
    const namespace = insertNamespace(threads, thread, each, origin);
    for (const { row, deltas, writtenBy } of each.checkpoints) {
      const saved: StoredCheckpoint = { checkpoint: { ...row, deltas }, writtenBy, namespace };
      namespace.checkpoints.push(saved);
      thread.checkpoints.set(row.id, saved);
    }
  }
  for (const row of exported.runs)
    thread.runs.set(row.id, { row: { ...row, thread: exported.id }, nth: ++threads.runCount, epoch: 0 });
  thread.events.push(...exported.events);
  const bodies = new Map(exported.artifacts.flatMap(({ row, body }) => (body === undefined ? [] : [[row.key, body]])));
  for (const { row } of exported.artifacts) {
    const body = bodies.get(row.key);
    if (body !== undefined) putArtifact(thread.artifacts, { row, body });
  }
  thread.queued = exported.runs.filter((run) => run.status === "queued" && !isDelayed(run)).length;
  const inboxes = exported.namespaces.flatMap(({ inbox }) => inbox);
  thread.messages = inboxes.filter(({ deliveredTo }) => deliveredTo === undefined).length;
  thread.requests = exported.requests ?? [];
  if (thread.requests.length > 0) threads.requestThreads.add(thread.id);
  thread.seq = exported.seq;
  thread.checkpoint = exported.checkpoint;
  thread.run = exported.run;
  thread.updatedAt = exported.updatedAt;
  for (const version of exported.outlines ?? []) saveOutline(threads, version, version.outline);
  threads.set(thread.id, thread);
}

function insertNamespace(
  threads: Threads,
  thread: Thread,
  exported: NamespaceExport,
  origin: StoredNamespace | undefined,
): StoredNamespace {
  const namespace = createNamespace(exported.name, exported.from, origin);
  thread.namespaces.set(namespace.name, namespace);
  namespace.run = exported.run;
  namespace.prunedRanges.push(...exported.prunedRanges);
  for (const effect of exported.effects) {
    const rows = namespace.effects.get(effect.step) ?? new Map<string, EffectRow>();
    namespace.effects.set(effect.step, rows.set(JSON.stringify([effect.task, effect.key]), effect));
  }
  for (const row of exported.interrupts) namespace.interrupts.set(row.id, { row, position: ++threads.interruptCount });
  for (const id of exported.awaited) namespace.awaited.add(id);
  for (const timer of exported.timers) namespace.timers.set(timer.id, { ...timer, thread: thread.id });
  namespace.inbox = exported.inbox;
  if (exported.inbox.length > 0) threads.eventThreads.add(thread.id);
  return namespace;
}
