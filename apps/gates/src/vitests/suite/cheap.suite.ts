import { crashMatrix, virtualClock } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { shop } from "./shop.ts";

test("a cheap order is paid after a retry delay of one hour of virtual time", async () => {
  const clock = virtualClock();
  const began = clock.clock.now();
  const t = await testRun(shop, { input: { cents: 5 }, clock });
  await t.finish();
  expect(t).toBeInState("done");
  expect(t.trace).toNeverVisit("review");
  expect(clock.clock.now() - began).toBeGreaterThan(1_000_000);
});

test("a cheap order survives crashes", async () => {
  expect(await crashMatrix({ graph: shop, input: { cents: 5 } })).toSurviveCrashes();
});
