/** A node goes to a node that its edge does not list. */
import { commandTargets, END, goto, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: (state) => (state.cart.length > 3 ? goto("check") : goto("close")),
    check: () => undefined,
    close: () => undefined,
  })
  .edges({
    [START]: "read",
    // @ts-expect-error Type 'CommandTargets<"check">' is not assignable to type '"the node returns a command to close: add it to commandTargets"'.
    read: commandTargets("check"),
    check: "close",
    close: END,
  });
