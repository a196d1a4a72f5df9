/** Definitions shared by the programs of this folder. This module has no mistake. */
import {
  channel,
  defineContext,
  defineGraph,
  defineState,
  defineTool,
  END,
  inject,
  memoryStore,
  START,
} from "statewright";
import * as z from "zod";

export const Shop = defineState({
  cart: z.array(z.string()).default([]),
  verdict: z.enum(["ship", "fix"]).nullable().default(null),
  notes: channel.list(z.string()),
  total: channel.reduce(z.number().default(0), (sum, add: number) => sum + add),
  messages: channel.messages(),
});

export const Visit = defineContext({ user: z.string() });

export const Item = z.object({ item: z.string(), count: z.number() });

export const interrupts = {
  approve: { answer: z.object({ ok: z.boolean() }), payload: z.object({ cents: z.number() }) },
  name: z.string(),
} as const;

export const shop = defineGraph({ name: "shop", state: Shop, context: Visit, interrupts });

export const store = memoryStore();

const Order = defineState({ amount: z.number(), note: z.string().optional() });

/** A finished graph with a context, an input and two interrupts. */
export const order = defineGraph({ name: "order", state: Order, context: Visit, interrupts })
  .nodes({
    pay: async (state, { interrupt }) => {
      const { ok } = await interrupt("approve", { payload: { cents: state.amount } });
      return ok ? { note: "paid" } : undefined;
    },
    ship: () => undefined,
  })
  .edges({ [START]: "pay", pay: "ship", ship: END });

/** Another graph. */
export const returns = defineGraph({ name: "returns", state: Order })
  .nodes({ check: () => undefined })
  .edges({ [START]: "check", check: END });

export const refund = defineTool({
  name: "refund",
  description: "Refunds an amount to the customer.",
  input: z.object({ order: z.string(), cents: z.number() }),
  inject: { user: inject.context(Visit, (visit) => visit.user) },
  run: ({ order: id, cents }, { injected }) => `${cents} of ${id} refunded to ${injected.user}`,
});

export const search = defineTool({
  name: "search",
  description: "Searches the products of the shop.",
  input: z.object({ query: z.string(), limit: z.number().optional() }),
  run: ({ query }) => query,
});
