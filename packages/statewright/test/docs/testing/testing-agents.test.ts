import { call, faults, rejectInvalidTranscripts, say, scriptedModel } from "@statewright/testing";
import { testRun, toolTest } from "@statewright/testing/vitest";
import { defineContext, defineTool, inject } from "statewright";
import { expect, test } from "vitest";
import * as z from "zod";
import { findOrder, refund, refunds } from "./refund-agent.ts";

test("the refund agent asks before it pays, and pays once", async () => {
  const model = scriptedModel([call(findOrder, { order: "7" }), call(refund, { order: "7" }), say("Paid back.")]);
  const t = await testRun(refunds, { input: "Pay order 7 back.", model });
  await t.until("tools.interrupted");
  await t.crash();
  await t.resume({ approve: true });
  expect(t).toHaveCalledTools([{ name: "find_order" }, call(refund, { order: "7" })]);
  expect(t).toHaveCalledTools([call(refund, { order: expect.stringMatching(/^\d+$/) })], { mode: "superset" });
  expect(t).toHaveRunOnce("refund");
});

test("unknown names of an agent do not compile in a test", async () => {
  const t = await testRun(refunds, { input: "Hello", model: scriptedModel([say("Hello")]) });
  await t.finish();
  // @ts-expect-error the tool is called refund
  expect(t).not.toHaveRunOnce("refunds");
});

test("the refund agent retries when the model fails after the tool call", async () => {
  const model = scriptedModel(({ messages }) =>
    messages.at(-1)?.role === "tool" ? say("Here it is.") : call(findOrder, { order: "7" }),
  );
  const strict = rejectInvalidTranscripts(faults.model(model, { failNth: 2 }));
  const t = await testRun(refunds, { input: "Where is order 7?", model: strict });
  await t.finish();
  expect(t).toHaveRunOnce("find_order");
  expect(t.state.messages.at(-1)).toMatchObject({ content: [{ text: "Here it is." }] });
});

const Shop = defineContext({ customerId: z.string() });
const orders = defineTool({
  name: "orders",
  description: "List the orders of the customer.",
  input: z.object({ since: z.int() }),
  inject: { customer: Shop.from((shop) => shop.customerId), key: inject.secret("SHOP_KEY") },
  effect: "pure",
  run: ({ since }, { injected }) => `orders of ${injected.customer} since ${since}`,
});

test("toolTest runs a tool with its hidden context and secrets", async () => {
  const { text, result } = await toolTest(orders, {
    args: { since: 2024 },
    context: { customerId: "c1" },
    secrets: { SHOP_KEY: "hush" },
  });
  expect(text).toBe("orders of c1 since 2024");
  expect(result.attempts).toBe(1);
});
