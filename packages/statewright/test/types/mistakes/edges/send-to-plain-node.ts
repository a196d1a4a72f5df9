/** A node sends an input to a node that takes none. */
import { commandTargets, END, START, send } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'Send<"check", string>[]' is not assignable to type 'readonly "the node check takes no input: use goto"[]'.
    read: (state) => state.cart.map((item) => send("check", item)),
    check: () => undefined,
  })
  .edges({
    [START]: "read",
    read: commandTargets("check"),
    check: END,
  });
