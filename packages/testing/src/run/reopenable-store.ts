/** Store of a test run across crashes: opening, and reopening for the next process. */
import { type MemoryStore, memoryStore, type Store } from "@statewright/core";

/** Access to the store of a test run, shared by its processes or opened by a function. */
export interface ReopenableStore {
  open(): Store;
  /** Returns the store for the next process, after the death of the previous process. */
  reopen(dead: Store): Promise<Store>;
}

/**
 * Creates the store access of a test run; in memory by default. A store instance must support a crash inside this
 * process; other stores need a function.
 */
export function createReopenableStore(source: Store | (() => Store) | undefined): ReopenableStore {
  if (typeof source === "function")
    return {
      open: source,
      reopen: async (dead) => {
        await dead.close();
        const next = source();
        if (next === dead)
          throw new Error(
            `testRun: expected \`store\` to open a new store, got the store "${dead.name}", which died with the process. Return a new store, as in store: () => sqliteStore(path), or pass a memory store, store: memoryStore().`,
          );
        return next;
      },
    };
  const store = source ?? memoryStore();
  return {
    open: () => store,
    reopen: async (dead) => {
      if (!canCrash(dead))
        throw new Error(
          `testRun: expected a store that can crash inside this process, got the store "${dead.name}". Pass a function that opens the store, such as store: () => sqliteStore(path).`,
        );
      const next = dead.peer();
      dead.crash();
      return next;
    },
  };
}

function canCrash(store: Store): store is MemoryStore {
  return "peer" in store && "crash" in store;
}
