import { channel, defineGraph, defineState, END, type Graph, route, START } from "@statewright/core";
import * as z from "zod";

/** Graph with an interrupt, a retry delay of one hour, and an edge without a test. */
export const shop: Graph = defineGraph({
  name: "shop",
  state: defineState({ cents: z.number(), log: channel.list(z.string()) }),
  interrupts: { allow: z.boolean() },
})
  .nodes({
    price: {
      run: (_state, { attempt }) => {
        if (attempt === 1) throw new Error("busy");
        return { log: ["priced"] };
      },
      retry: { attempts: 2, initialMs: 3_600_000, maxMs: 3_600_000 },
    },
    review: async (_state, { interrupt }) => ({ log: [String(await interrupt("allow"))] }),
    pay: () => ({ log: ["paid"] }),
  })
  .edges({
    [START]: "price",
    price: route(["review", "pay"], ({ cents }) => (cents > 1_000 ? "review" : "pay")),
    review: route(["pay", END], ({ log }) => (log.at(-1) === "true" ? "pay" : END)),
    pay: END,
  });
