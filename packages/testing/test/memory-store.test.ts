import { memoryStore } from "@statewright/core";
import { type StoreUnderTest, storeConformance, wordConformance } from "@statewright/testing/conformance";
import { describe, test } from "vitest";

function open(): StoreUnderTest {
  const store = memoryStore();
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

describe("the memory store", () => {
  for (const { name, run } of [...storeConformance, ...wordConformance]) test(name, () => run(open));
});
