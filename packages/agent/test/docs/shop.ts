import { createAgent } from "@statewright/agent";
import { decide, defineContext, defineMiddleware, defineTool } from "@statewright/core";
import { say, scriptedModel } from "@statewright/testing";
import * as z from "zod";

const Shop = defineContext({ customerId: z.string() });

export const refund = defineTool({
  name: "refund",
  description: "Return money for one order.",
  input: z.object({ orderId: z.string(), cents: z.int().positive() }),
  inject: { customer: Shop.from((shop) => shop.customerId) },
  effect: "idempotent",
  run: ({ orderId, cents }) => `Refunded ${cents / 100} EUR for order ${orderId}`,
});

const audit = defineMiddleware({ name: "audit", beforeTool: ({ call }) => decide.interrupt(call, "it spends money") });

/** An agent that asks a person before it refunds; tests give it a model of their own. */
export const shop = createAgent({
  name: "shop",
  model: scriptedModel([say("Nobody gave me a model.")]),
  context: Shop,
  tools: [refund],
  middleware: [audit],
});
