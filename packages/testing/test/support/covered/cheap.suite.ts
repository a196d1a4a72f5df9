import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { shop } from "./shop.ts";

test("a cheap order is paid", async () => {
  const t = await testRun(shop, { input: { cents: 5 } });
  await t.finish();
  expect(t.status).toBe("done");
});
