/** A node writes a channel that its `writes` do not list. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'string[]' is not assignable to type '"add notes to the writes of the node"'.
    read: { writes: ["cart"], run: () => ({ notes: ["read"] }) },
  })
  .edges({ [START]: "read", read: END });
