/** Stores of a simulation. */
import { memoryStore, type Store } from "@statewright/core";

/** Access of the processes to the stored thread. */
export interface SimulatedStores {
  /** Opens the store for a new process; `crash` simulates the death of that process. */
  readonly open: () => { readonly store: Store; readonly crash: () => void };
  /** Returns a store for reading the current threads. */
  readonly getReader: () => Store;
  readonly dispose: () => void | Promise<void>;
}

/** Creates stores in memory: every process is an owner of the same threads. */
export function createMemoryStores(): SimulatedStores {
  const first = memoryStore();
  return {
    getReader: () => first,
    open: () => {
      const store = first.peer();
      return { store, crash: () => store.crash() };
    },
    dispose: () => undefined,
  };
}
