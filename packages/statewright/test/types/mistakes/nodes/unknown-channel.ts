/** A node returns a channel that the state does not have. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'string[]' is not assignable to type '"the state has no channel crat"'.
    read: () => ({ crat: ["tea"] }),
    check: (state) => ({ total: state.cart.length }),
  })
  .edges({ [START]: "read", read: "check", check: END });
