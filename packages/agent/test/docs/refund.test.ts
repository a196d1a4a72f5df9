import { checkGraph } from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import { refund, shop } from "./shop.ts"; // a tool, and an agent that asks a person before it refunds

test("the refund agent asks before it pays and survives a crash", async () => {
  const model = scriptedModel([call(refund, { orderId: "7", cents: 900 }), say("Done")]);
  const t = await testRun(shop, { input: "refund order 7", context: { customerId: "c1" }, model });
  await t.until("tools.interrupted");
  await t.crash();
  await t.resume({ approve: true });
  expect(t.trace).toPassThrough(["model", "tools.interrupted", "tools", "model", "done"]);
  expect(t.trace).toHaveRunOnce("refund");
});

test("the refund agent has no dead ends", () => expect(checkGraph(shop)).toHaveNoViolations());
