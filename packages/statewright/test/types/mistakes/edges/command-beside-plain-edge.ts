/** A node returns a command, and its edge is a plain edge. */
import { END, goto, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: (state) => (state.cart.length > 3 ? goto("check") : undefined),
    check: () => undefined,
  })
  .edges({
    [START]: "read",
    // @ts-expect-error Type '"check"' is not assignable to type '"the node returns a command to check: use commandTargets"'.
    read: "check",
    check: END,
  });
