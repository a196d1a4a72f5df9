/** A node sends an input of a wrong type. */
import { commandTargets, END, inputNode, START, send } from "statewright";
import { Item, shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'Send<"pack", { item: string; count: string; }>[]' is not assignable to type 'readonly Send<"pack", { readonly item: string; readonly count: number; }>[]'.
    read: (state) => state.cart.map((item) => send("pack", { item, count: "1" })),
    pack: inputNode(Item, (_state, { input }) => ({ notes: [input.item] })),
  })
  .edges({
    [START]: "read",
    read: commandTargets("pack"),
    pack: END,
  });
