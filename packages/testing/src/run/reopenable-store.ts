/** The store of a run whose processes die: how it is opened, and how the next process finds it. */
import { type MemoryStore, memoryStore, type Store } from "@statewright/core";

/** Where the store of a test run is: one that outlives its processes, or a function that opens it. */
export interface StorePlace {
  open(): Store;
  /** The store as the next process finds it. */
  reopen(dead: Store): Store;
}

/** The place of a store that a test gives; in memory by default. Only a store that can die inside this process may be given as it is. */
export function storePlace(given: Store | (() => Store) | undefined): StorePlace {
  if (typeof given === "function")
    return {
      open: given,
      reopen: (dead) => {
        dead.close();
        const next = given();
        if (next === dead)
          throw new Error(
            `the function that testRun got as its store gives the store "${dead.name}" that died with the process: open it anew there, as in store: () => sqliteStore(path), or give a memory store as it is, store: memoryStore()`,
          );
        return next;
      },
    };
  const store = given ?? memoryStore();
  return {
    open: () => store,
    reopen: (dead) => {
      if (!canDie(dead))
        throw new Error(
          `the store "${dead.name}" cannot die inside this process: give testRun a function that opens it, such as store: () => sqliteStore(path)`,
        );
      const next = dead.peer();
      dead.crash();
      return next;
    },
  };
}

function canDie(store: Store): store is MemoryStore {
  return "peer" in store && "crash" in store;
}
