/** What every cache of nodes must do: run each test against a cache of your own. */
import type { NodeCache } from "@statewright/core";
import { same } from "./assert.ts";

/** One test of the suite: throws when the cache does not do what `name` says. `open` gives a fresh, empty cache. */
export interface CacheTest {
  readonly name: string;
  run(open: () => NodeCache | Promise<NodeCache>): Promise<void>;
}

/** The tests that every cache of nodes must pass. */
export const cacheConformance: readonly CacheTest[] = [
  cacheTest("what was never put is not there", async (cache) => {
    same(await cache.get("g/1/a/k"), undefined, "an unknown key");
    await cache.delete("g/1/a/k");
  }),

  cacheTest("what was put is handed back as it was, with its end or without one", async (cache) => {
    const text = JSON.stringify({ text: "ä\n\u2028 \u{1F600}", nested: [[], {}, null] });
    await cache.put("endless", { text });
    await cache.put("ending", { text: "", expiresAt: 1_000 });
    same(await cache.get("endless"), { text }, "an entry without an end");
    same(await cache.get("ending"), { text: "", expiresAt: 1_000 }, "an entry with one");
  }),

  cacheTest("a second put takes the place of the first", async (cache) => {
    await cache.put("k", { text: "1", expiresAt: 1_000 });
    await cache.put("k", { text: "2" });
    same(await cache.get("k"), { text: "2" }, "the entry");
  }),

  cacheTest("keys are taken as they are: none is another's, whatever stands in it", async (cache) => {
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
    for (const [index, key] of keys.entries()) same(await cache.get(key), { text: `${index}` }, JSON.stringify(key));
  }),

  cacheTest("what was deleted is gone, and nothing else", async (cache) => {
    await cache.put("one", { text: "1" });
    await cache.put("two", { text: "2" });
    await cache.delete("one");
    same(await cache.get("one"), undefined, "the deleted entry");
    same(await cache.get("two"), { text: "2" }, "the other");
  }),
];

function cacheTest(name: string, work: (cache: NodeCache) => Promise<void>): CacheTest {
  return { name, run: async (open) => work(await open()) };
}
