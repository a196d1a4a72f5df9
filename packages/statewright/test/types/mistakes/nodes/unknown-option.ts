/** A node has an option that nodes do not have. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'number' is not assignable to type '"nodes have no option timeout"'.
    read: { run: () => ({ cart: ["tea"] }), timeout: 1_000 },
  })
  .edges({ [START]: "read", read: END });
