/** A function that chooses the next node stands without `route`. */

import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop.nodes({ read: () => undefined, check: () => undefined }).edges({
  [START]: "read",
  // @ts-expect-error Type '(state: { readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }) => "__end__" | "check"' is not assignable to type '"use route(targets, choose) for a function that chooses the next node"'.
  read: (state) => (state.total > 3 ? "check" : END),
  check: END,
});
