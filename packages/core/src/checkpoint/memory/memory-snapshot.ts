/**
 * Snapshots of the memory store. A snapshot shares the threads of the store until a write: the write first gives every
 * open snapshot a copy of the thread that it changes.
 */
import { createClosedError } from "../rules.ts";
import type { StoredCheckpoint, StoredNamespace, Thread, Threads } from "./memory-thread.ts";

/** Threads changed since the snapshot, as of the snapshot; undefined for a thread that did not exist. */
export type SavedThreads = Map<string, Thread | undefined>;

/** Source of reads: the store itself, or a snapshot. */
export interface ThreadSource {
  find(id: string): Thread | undefined;
  /** Returns all threads, for lists. */
  all(): Threads;
}

/** Gives every open snapshot without a copy of this thread a copy of its current state. */
export function saveForSnapshots(threads: Threads, id: string): void {
  if (threads.snapshots.size === 0) return;
  const open = [...threads.snapshots].filter((saved) => !saved.has(id));
  const copy = open.length === 0 ? undefined : copyThread(threads.get(id));
  for (const saved of open) saved.set(id, copy);
}

/** Calls `read` with the threads as of this moment. */
export async function readSnapshot<Value>(
  threads: Threads,
  read: (source: ThreadSource) => Promise<Value>,
): Promise<Value> {
  const saved: SavedThreads = new Map();
  threads.snapshots.add(saved);
  const checkOpen = (): void => {
    if (!threads.snapshots.has(saved)) throw createClosedError("memory");
  };
  try {
    return await read({
      find: (id) => {
        checkOpen();
        return saved.has(id) ? saved.get(id) : threads.get(id);
      },
      all: () => {
        checkOpen();
        return listSaved(threads, saved);
      },
    });
  } finally {
    threads.snapshots.delete(saved);
  }
}

function listSaved(threads: Threads, saved: SavedThreads): Threads {
  const all = new Map(threads);
  for (const [id, thread] of saved)
    if (thread === undefined) all.delete(id);
    else all.set(id, thread);
  return Object.assign(all, threads);
}

/** Copies the containers of a thread; rows are immutable and shared. */
function copyThread(thread: Thread | undefined): Thread | undefined {
  if (thread === undefined) return undefined;
  const copies = new Map<StoredNamespace, StoredNamespace>();
  const checkpoints = new Map<StoredCheckpoint, StoredCheckpoint>();
  const copyNamespace = (namespace: StoredNamespace): StoredNamespace => {
    const known = copies.get(namespace);
    if (known !== undefined) return known;
    const { effects, interrupts, awaited, timers, prunedRanges, origin } = namespace;
    const copy: StoredNamespace = {
      ...namespace,
      origin: origin === undefined ? undefined : copyNamespace(origin),
      checkpoints: [],
      prunedRanges: [...prunedRanges],
      effects: new Map([...effects].map(([step, rows]) => [step, new Map(rows)])),
      interrupts: new Map(interrupts),
      awaited: new Set(awaited),
      timers: new Map(timers),
    };
    copies.set(namespace, copy);
    for (const each of namespace.checkpoints) {
      const checkpoint = { ...each, namespace: copy };
      checkpoints.set(each, checkpoint);
      copy.checkpoints.push(checkpoint);
    }
    return copy;
  };
  const namespaces = new Map([...thread.namespaces].map(([name, each]) => [name, copyNamespace(each)]));
  return {
    ...thread,
    namespaces,
    checkpoints: new Map([...thread.checkpoints].map(([id, each]) => [id, checkpoints.get(each) ?? each])),
    runs: new Map(thread.runs),
    events: [...thread.events],
  };
}
