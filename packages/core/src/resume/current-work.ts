/** Work of an engine that is active, or waits for a slot. */
import type { PendingWork } from "./pending-work.ts";

export interface CurrentWork {
  readonly size: () => number;
  /** Number of works that count against the concurrency of the engine. */
  readonly countBounded: () => number;
  readonly hasThread: (thread: string) => boolean;
  add(work: PendingWork): void;
  /** Marks a work as started. */
  start(work: PendingWork): void;
  delete(work: PendingWork): void;
  /** Removes all work; returns the work that was not started. */
  clear(): readonly PendingWork[];
}

export function createCurrentWork(): CurrentWork {
  const works = new Set<PendingWork>();
  const unstarted = new Set<PendingWork>();
  /** Number of works by thread. */
  const threads = new Map<string, number>();
  let bounded = 0;

  return {
    size: () => works.size,
    countBounded: () => bounded,
    hasThread: (thread) => threads.has(thread),
    add: (work) => {
      works.add(work);
      unstarted.add(work);
      threads.set(work.thread, (threads.get(work.thread) ?? 0) + 1);
      if (work.isBounded) bounded += 1;
    },
    start: (work) => void unstarted.delete(work),
    delete: (work) => {
      if (!works.delete(work)) return;
      const remaining = (threads.get(work.thread) ?? 1) - 1;
      if (remaining > 0) threads.set(work.thread, remaining);
      else threads.delete(work.thread);
      if (work.isBounded) bounded -= 1;
    },
    clear: () => {
      const cancelled = [...unstarted];
      works.clear();
      unstarted.clear();
      threads.clear();
      bounded = 0;
      return cancelled;
    },
  };
}
