/** A node that may end the graph with a command has a plain edge. */

import { END, goto, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({ read: (state) => (state.total > 3 ? goto(END) : undefined), check: () => undefined })
  // @ts-expect-error Type '"check"' is not assignable to type '"the node returns a command to __end__: use commandTargets"'.
  .edges({ [START]: "read", read: "check", check: END });
