import { createAgent } from "@statewright/agent";
import {
  decide,
  defineContext,
  defineMiddleware,
  defineState,
  defineTool,
  env,
  inject,
  type Model,
} from "@statewright/core";
import { call, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { expect, test } from "vitest";
import * as z from "zod";

const offline: Model = { id: "offline", respond: () => Promise.reject(new Error("there is no network here")) };

const Shop = defineContext({ customerId: z.string() });
const Orders = defineState({ cart: z.array(z.string()).default([]) });
const refund = defineTool({
  name: "refund",
  description: "Return money for one order.",
  input: z.object({ orderId: z.string(), cents: z.int().positive() }),
  inject: { customer: Shop.from((shop) => shop.customerId), key: inject.secret("PAY_KEY") },
  effect: "idempotent",
  run: ({ orderId, cents }, { injected }) => `Refunded ${cents} cents of order ${orderId} to ${injected.customer}`,
});
const askFirst = defineMiddleware({
  name: "ask first",
  beforeTool: ({ call: made }) => decide.interrupt(made, "it spends money"),
});
const shop = createAgent({
  name: "shop",
  model: offline,
  context: Shop,
  state: Orders,
  tools: [refund],
  middleware: [askFirst],
});

test("an agent asks for approval before a payment and survives a crash [K1, K9]", async () => {
  const t = await testRun(shop, {
    input: "refund order 7",
    context: { customerId: "c1" },
    secrets: { get: () => "hush" },
    model: scriptedModel([call("refund", { orderId: "7", cents: 900 }), say("Done")]),
    clock: "virtual",
  });
  await t.until("interrupted");
  expect(t).toBeInState("tools.interrupted");
  await t.crash();
  await t.resume({ approve: true });
  expect(t.trace).toPassThrough(["model", "tools.interrupted", "tools", "model", "done"]);
  expect(t.trace).toHaveCalledTools([{ name: "refund", args: { orderId: "7", cents: 900 } }]);
  expect(t.trace).toHaveRunOnce("refund");
  expect(t.state.messages.at(-1)).toMatchObject({ role: "assistant", content: [{ text: "Done" }] });
  expect(t.state.cart).toEqual([]);
});

test("testRun of an agent types its input, context and state names (types)", () => {
  const types = async (): Promise<void> => {
    // @ts-expect-error the context that the agent declares
    await testRun(shop, { input: "hi" });
    // @ts-expect-error a cart holds names
    await testRun(shop, { input: { cart: [7] }, context: { customerId: "c1" } });
    const t = await testRun(shop, {
      input: { cart: ["book"] },
      context: { customerId: "c1" },
      secrets: env(["PAY_KEY"]),
    });
    // @ts-expect-error a node that it does not have
    await t.until("tolls");
  };
  expect(types).toBeTypeOf("function");
});
