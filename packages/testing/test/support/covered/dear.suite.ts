import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { shop } from "./shop.ts";

test.concurrent("an expensive order is reviewed", async () => {
  const t = await testRun(shop, { input: { cents: 5_000 } });
  await t.finish();
  await t.resume({ allow: true });
  expect(t.status).toBe("done");
});
test.concurrent("a second expensive order waits for its review", async () => {
  const t = await testRun(shop, { input: { cents: 6_000 } });
  await t.finish();
  expect(t.status).toBe("waiting");
});
