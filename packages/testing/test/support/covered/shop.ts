/** Graph for the coverage tests: a route, an interrupt, and an edge that its tests omit. */
import { channel, defineGraph, defineState, END, type Graph, route, START } from "@statewright/core";
import * as z from "zod";

export const shop: Graph = defineGraph({
  name: "shop",
  state: defineState({ cents: z.number(), log: channel.list(z.string()) }),
  interrupts: { allow: z.boolean() },
})
  .nodes({
    price: () => ({ log: ["priced"] }),
    review: async (_state, { interrupt }) => ({ log: [String(await interrupt("allow"))] }),
    pay: () => ({ log: ["paid"] }),
  })
  .edges({
    [START]: "price",
    price: route(["review", "pay"], ({ cents }) => (cents > 1_000 ? "review" : "pay")),
    review: route(["pay", END], ({ log }) => (log.at(-1) === "true" ? "pay" : END)),
    pay: END,
  });
