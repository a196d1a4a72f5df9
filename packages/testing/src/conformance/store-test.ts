/** What a test of a store is: it opens a store of its own, and throws when that does not do what its name says. */
import type { Store } from "@statewright/core";

/** A fresh, empty store, and what a test may do to it. */
export interface StoreUnderTest {
  readonly store: Store;
  /** Another owner of the same threads, as a second process would be. */
  peer(): Store;
  /** End `store` as a SIGKILL would; gives a new owner of all that was durable by then. */
  crash(): Store;
  /** Close everything that was opened, and remove what it left. */
  dispose(): void;
}

/** One test of the suite: throws when the store does not do what `name` says. */
export interface StoreTest {
  readonly name: string;
  /** It needs more than one owner: a peer, or one after a crash. */
  readonly shared: boolean;
  run(open: () => StoreUnderTest | Promise<StoreUnderTest>): Promise<void>;
}

export function storeTest(name: string, body: (under: Pick<StoreUnderTest, "store">) => Promise<void>): StoreTest {
  return { ...sharedTest(name, body), shared: false };
}

export function sharedTest(name: string, body: (under: StoreUnderTest) => Promise<void>): StoreTest {
  return {
    name,
    shared: true,
    run: async (open) => {
      const under = await open();
      try {
        await body(under);
      } finally {
        under.dispose();
      }
    },
  };
}
