/** A node goes to a node that does not exist. */
import { commandTargets, END, goto, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'Goto<"__end__", never> | Goto<"chekc", never>' is not assignable to type '"there is no node chekc" | Goto<"__end__", never>'.
    read: (state) => (state.cart.length > 3 ? goto("chekc") : goto(END)),
    check: () => undefined,
  })
  .edges({
    [START]: "read",
    read: commandTargets("check", END),
    check: END,
  });
