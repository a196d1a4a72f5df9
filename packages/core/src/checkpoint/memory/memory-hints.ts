/** Hints of the memory store: all owners of its threads share the listeners. */
import type { HintKind, HintListener, WatchOptions } from "../run-request.ts";

/** Listeners of a store, and the changes since the last report. */
export interface MemoryHints {
  /** Calls the listener for each change of these kinds, until the returned function is called. */
  watch(listener: HintListener, options?: WatchOptions): () => void;
  /** Records a change; reported by `report`. */
  record(thread: string, kind: HintKind): void;
  /** Reports the recorded changes, each thread and kind once. */
  report(): void;
}

/** Creates hints without listeners. */
export function createMemoryHints(): MemoryHints {
  const listeners = new Map<HintListener, readonly HintKind[] | undefined>();
  const changed: Record<HintKind, Set<string>> = { input: new Set(), change: new Set() };

  function reportKind(kind: HintKind): void {
    const threads = [...changed[kind]];
    changed[kind].clear();
    for (const thread of threads)
      for (const [listener, kinds] of [...listeners]) if (kinds?.includes(kind) !== false) listener(thread, kind);
  }

  return {
    watch: (listener, { kinds } = {}) => {
      // The same function may listen twice.
      const own: HintListener = (thread, kind) => listener(thread, kind);
      listeners.set(own, kinds);
      return () => void listeners.delete(own);
    },
    record: (thread, kind) => {
      if (listeners.size > 0) changed[kind].add(thread);
    },
    report: () => {
      if (changed.input.size > 0) reportKind("input");
      if (changed.change.size > 0) reportKind("change");
    },
  };
}
