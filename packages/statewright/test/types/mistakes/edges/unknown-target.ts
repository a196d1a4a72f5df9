/** An edge leads to a node that does not exist. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
    check: () => undefined,
  })
  .edges({
    [START]: "read",
    // @ts-expect-error Type '"chekc"' is not assignable to type '"__end__" | "check" | "read"'. Did you mean '"check"'?
    read: "chekc",
    check: END,
  });
