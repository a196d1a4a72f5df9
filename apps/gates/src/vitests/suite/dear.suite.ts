import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { shop } from "./shop.ts";

test.concurrent("a dear order is reviewed", async () => {
  const t = await testRun(shop, { input: { cents: 5_000 } });
  await t.until("review.interrupted");
  await t.crash();
  await t.resume({ allow: true });
  expect(t.trace).toPassThrough(["price", "review.interrupted", "pay", "done"]);
});

test.concurrent("another one stands beside it", async () => {
  const t = await testRun(shop, { input: { cents: 6_000 } });
  await t.finish();
  expect(t.status).toBe("waiting");
});
