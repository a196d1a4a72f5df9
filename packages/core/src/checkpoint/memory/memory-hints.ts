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

const hintKinds: readonly HintKind[] = ["input", "change"];

/** Creates hints without listeners. */
export function createMemoryHints(): MemoryHints {
  const listeners = new Map<HintListener, readonly HintKind[] | undefined>();
  const watched: Record<HintKind, boolean> = { input: false, change: false };
  const changed: Record<HintKind, Set<string>> = { input: new Set(), change: new Set() };

  /** Every commit asks for the kinds that listeners wait for. */
  function updateWatched(): void {
    const all = [...listeners.values()];
    for (const kind of hintKinds) watched[kind] = all.some((kinds) => kinds?.includes(kind) !== false);
  }

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
      updateWatched();
      return () => {
        listeners.delete(own);
        updateWatched();
      };
    },
    record: (thread, kind) => {
      if (watched[kind]) changed[kind].add(thread);
    },
    report: () => {
      if (changed.input.size > 0) reportKind("input");
      if (changed.change.size > 0) reportKind("change");
    },
  };
}
