/** An edge starts at a node that does not exist. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
  })
  .edges({
    [START]: "read",
    read: END,
    // @ts-expect-error Type '"__end__"' is not assignable to type '"there is no node check"'.
    check: END,
  });
