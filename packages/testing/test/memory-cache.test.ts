import { memoryCache } from "@statewright/core/store";
import { cacheConformance } from "@statewright/testing/conformance";
import { describe, expect, test } from "vitest";

describe("the memory cache", () => {
  for (const { name, run } of cacheConformance) test(name, () => run(() => memoryCache()));
});

test("the cache suite detects a cache that confuses keys or deletes nothing", async () => {
  const createCarelessCache = () => {
    const entries = new Map<string, { readonly text: string }>();
    return {
      get: (key: string) => entries.get(key.trim().toLowerCase()),
      put: (key: string, entry: { readonly text: string }) => void entries.set(key.trim().toLowerCase(), entry),
      delete: () => undefined,
    };
  };
  const failed: string[] = [];
  for (const { name, run } of cacheConformance) await run(createCarelessCache).catch(() => failed.push(name));
  expect(failed).toEqual([
    "keys are compared exactly: case, spaces and special characters are significant",
    "a delete removes the entry of its key only",
  ]);
});
