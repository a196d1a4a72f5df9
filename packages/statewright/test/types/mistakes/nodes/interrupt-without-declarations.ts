/** A node raises an interrupt in a graph that declares no interrupts. */
import { defineGraph, END, START } from "statewright";
import { Shop } from "../shop.ts";

export const graph = defineGraph({ name: "plain", state: Shop })
  .nodes({
    read: async (_state, { interrupt }) => {
      // @ts-expect-error Argument of type '"address"' is not assignable to parameter of type '"declare the interrupt in `interrupts` of defineGraph"'.
      const address = await interrupt("address");
      return { notes: [String(address)] };
    },
  })
  .edges({ [START]: "read", read: END });
