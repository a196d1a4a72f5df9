import { anthropic } from "@ai-sdk/anthropic";
import { createAgent, defineTool } from "statewright";
import { confirmTools } from "statewright/middleware";
import * as z from "zod";

export const findOrder = defineTool({
  name: "find_order",
  description: "Find an order by its number.",
  input: z.object({ order: z.string() }),
  effect: "pure",
  safety: { access: "read" },
  run: ({ order }) => `Order ${order}: one lamp, 40 euros.`,
});

export const refund = defineTool({
  name: "refund",
  description: "Pay the price of an order back.",
  input: z.object({ order: z.string() }),
  effect: "idempotent",
  safety: { access: "write", spend: true, confirm: "always" },
  run: ({ order }) => `Paid order ${order} back.`,
});

export const refunds = createAgent({
  name: "refunds",
  model: anthropic("claude-sonnet-4-5"),
  instructions: "You help people with their orders.",
  tools: [findOrder, refund],
  middleware: [confirmTools()],
});
