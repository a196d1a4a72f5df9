/** Graph whose run waits at an interrupt. The bench starts, loads and counts such runs. */
import { channel, defineGraph, defineState, END, START } from "statewright";
import * as z from "zod";

export const interruptGraph = defineGraph({
  name: "asking",
  state: defineState({ log: channel.list(z.string()) }),
  interrupts: { ok: z.boolean() },
})
  .nodes({ ask: async (_state, { interrupt }) => ({ log: [`${await interrupt("ok")}`] }) })
  .edges({ [START]: "ask", ask: END });
