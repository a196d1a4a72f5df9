/** A body with several statements returns a channel that the state does not have. */

import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type '(state: { readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }) => { cuont: number; }' is not assignable to type 'NodeReturning<{ readonly cuont: "the state has no channel cuont"; }>'.
    read: (state) => {
      const count = state.cart.length;
      return { cuont: count };
    },
    check: () => undefined,
  })
  .edges({ [START]: "read", read: "check", check: END });
