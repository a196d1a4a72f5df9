/**
 * Definition of store conformance tests. Each test opens its own store and throws when the store violates the name of
 * the test.
 */
import type { Store } from "@statewright/core";

/** A fresh, empty store with operations for tests. */
export interface StoreUnderTest {
  readonly store: Store;
  /** Returns another owner of the same threads, like a second process. */
  peer(): Store | Promise<Store>;
  /** Ends `store` like a SIGKILL and returns a new owner of all data that was durable at this point. */
  crash(): Store | Promise<Store>;
  /** Closes all opened stores and removes their files. */
  dispose(): void | Promise<void>;
}

/** A test of the suite. `run` throws when the store violates `name`. */
export interface StoreTest {
  readonly name: string;
  /** True when the test needs more than one owner: a peer, or a new owner after a crash. */
  readonly shared: boolean;
  /** Runs the test with fresh instances from `open`. Rejects when the test fails. */
  run(open: () => StoreUnderTest | Promise<StoreUnderTest>): Promise<void>;
}

export function defineStoreTest(
  name: string,
  body: (fixture: Pick<StoreUnderTest, "store">) => Promise<void>,
): StoreTest {
  return { ...defineSharedStoreTest(name, body), shared: false };
}

export function defineSharedStoreTest(name: string, body: (fixture: StoreUnderTest) => Promise<void>): StoreTest {
  return {
    name,
    shared: true,
    run: async (open) => {
      const fixture = await open();
      try {
        await body(fixture);
      } finally {
        await fixture.dispose();
      }
    },
  };
}
