import { join } from "node:path";
import { crashProgram } from "@statewright/testing";
import { channel, defineGraph, defineState, END, START, sqliteStore } from "statewright";
import * as z from "zod";

export default crashProgram((outside) => {
  const orders = defineGraph({
    name: "orders",
    state: defineState({ order: z.string(), log: channel.list(z.string()) }),
    interrupts: { ship: z.boolean() },
  })
    .nodes({
      charge: async ({ order }, { step }) => {
        await step("charge", ({ idempotencyKey }) => outside.recordEffect(`charge for order ${order}`, idempotencyKey));
        return { log: ["charged"] };
      },
      ship: async ({ order }, { interrupt }) => {
        const yes = await interrupt("ship", { payload: `Ship order ${order}?` });
        return { log: [yes ? "shipped" : "kept"] };
      },
    })
    .edges({ [START]: "charge", charge: "ship", ship: END });
  return {
    graph: orders,
    input: { order: "7" },
    answers: { ship: true },
    store: (folder) => sqliteStore(join(folder, "orders.db")),
  };
});
