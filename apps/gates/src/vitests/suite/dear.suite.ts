import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { shop } from "./shop.ts";

test.concurrent("an expensive order is reviewed", async () => {
  const t = await testRun(shop, { input: { cents: 5_000 } });
  await t.until("review.interrupted");
  await t.crash();
  await t.resume({ allow: true });
  expect(t.trace).toPassThrough(["price", "review.interrupted", "pay", "done"]);
});

test.concurrent("a concurrent test of another expensive order waits for its review", async () => {
  const t = await testRun(shop, { input: { cents: 6_000 } });
  await t.finish();
  expect(t.status).toBe("waiting");
});
