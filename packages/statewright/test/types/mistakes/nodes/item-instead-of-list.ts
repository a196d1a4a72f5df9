/** A node writes one item to a list channel. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'string' is not assignable to type '"a write to a list is a list of items: use [item]"'.
    read: () => ({ notes: "read" }),
  })
  .edges({ [START]: "read", read: END });
