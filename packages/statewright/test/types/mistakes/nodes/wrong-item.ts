/** A node writes items of a wrong type to a list channel. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'number' is not assignable to type 'string'.
    read: (state) => ({ notes: [state.cart.length] }),
  })
  .edges({ [START]: "read", read: END });
