/** A node is the name of another node. */

import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type '"check"' is not assignable to type '"a node is a function, an object with `run`, or the result of inputNode, toolNode or subgraph"'.
    read: "check",
    check: () => undefined,
  })
  .edges({ [START]: "read", read: "check", check: END });
