import { type MemoryStoreOptions, memoryStore } from "@statewright/core";
import { type StoreUnderTest, storeConformance, wordConformance } from "@statewright/testing/conformance";
import { describe, test } from "vitest";

function open(options: MemoryStoreOptions = {}): StoreUnderTest {
  const store = memoryStore(options);
  return {
    store,
    peer: () => store.peer(),
    crash: () => {
      const next = store.peer();
      store.crash();
      return next;
    },
    dispose: () => store.close(),
  };
}

/** Opens a store whose operations on processes and connections take several turns of the event loop. */
async function openRemote(): Promise<StoreUnderTest> {
  const { store, peer, crash, dispose } = open();
  const wait = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    store,
    peer: () => wait().then(peer),
    crash: async () => {
      const next = await crash();
      await wait();
      return next;
    },
    dispose: () => wait().then(dispose),
  };
}

describe("the memory store", () => {
  for (const { name, run } of [...storeConformance, ...wordConformance]) test(name, () => run(() => open()));
});

describe("a memory store with a clock", () => {
  let time = 5_000;
  const now = () => (time += 1);
  for (const { name, run } of storeConformance) test(name, () => run(() => open({ now })));
});

describe("a store behind a connection", () => {
  test("a fixture with an asynchronous peer, crash and dispose passes the shared tests of the suite [PK9]", async () => {
    for (const { run, shared } of storeConformance) if (shared) await run(openRemote);
  });
});
