/** Conformance tests of node caches. */
import type { NodeCache } from "@statewright/core/store";
import { assertEqual } from "./assert.ts";

/** A test of the suite. `run` throws when the cache violates `name`; `open` returns a fresh, empty cache. */
export interface CacheTest {
  readonly name: string;
  /** Runs the test with fresh instances from `open`. Rejects when the test fails. */
  run(open: () => NodeCache | Promise<NodeCache>): Promise<void>;
}

/** Tests for every node cache. */
export const cacheConformance: readonly CacheTest[] = [
  defineCacheTest("a get of an unknown key returns undefined, and its delete is ignored", async (cache) => {
    assertEqual(await cache.get("g/1/a/k"), undefined, "the entry of an unknown key");
    await cache.delete("g/1/a/k");
  }),

  defineCacheTest("an entry is returned unchanged, with or without an expiry time", async (cache) => {
    const text = JSON.stringify({ text: "ä\n\u2028 \u{1F600}", nested: [[], {}, null] });
    await cache.put("endless", { text });
    await cache.put("ending", { text: "", expiresAt: 1_000 });
    assertEqual(await cache.get("endless"), { text }, "an entry without an expiry time");
    assertEqual(await cache.get("ending"), { text: "", expiresAt: 1_000 }, "an entry with an expiry time");
  }),

  defineCacheTest("a second put replaces the first entry", async (cache) => {
    await cache.put("k", { text: "1", expiresAt: 1_000 });
    await cache.put("k", { text: "2" });
    assertEqual(await cache.get("k"), { text: "2" }, "the entry");
  }),

  defineCacheTest("keys are compared exactly: case, spaces and special characters are significant", async (cache) => {
    const keys = [
      "a",
      "A",
      "a ",
      "a/b",
      "a%2Fb",
      "a\u0000b",
      "__proto__",
      "constructor",
      "",
      "ä",
      "a\u0308",
      "x".repeat(5_000),
    ];
    for (const [index, key] of keys.entries()) await cache.put(key, { text: `${index}` });
    for (const [index, key] of keys.entries())
      assertEqual(await cache.get(key), { text: `${index}` }, JSON.stringify(key));
  }),

  defineCacheTest("a delete removes the entry of its key only", async (cache) => {
    await cache.put("one", { text: "1" });
    await cache.put("two", { text: "2" });
    await cache.delete("one");
    assertEqual(await cache.get("one"), undefined, "the deleted entry");
    assertEqual(await cache.get("two"), { text: "2" }, "the other");
  }),
];

function defineCacheTest(name: string, body: (cache: NodeCache) => Promise<void>): CacheTest {
  return { name, run: async (open) => body(await open()) };
}
