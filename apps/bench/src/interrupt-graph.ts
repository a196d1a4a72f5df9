/** A run that waits for a person, which the bench loads, opens and counts. */
import { defineGraph, defineState, END, list, START } from "statewright";
import * as z from "zod";

export const asking = defineGraph({
  name: "asking",
  state: defineState({ log: list(z.string()) }),
  interrupts: { ok: z.boolean() },
})
  .nodes({ ask: async (_state, { interrupt }) => ({ log: [`${await interrupt("ok")}`] }) })
  .edges({ [START]: "ask", ask: END });
