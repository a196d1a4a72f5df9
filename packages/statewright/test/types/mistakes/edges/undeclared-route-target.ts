/** A route returns a node that it does not declare as a target. */
import { END, route, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
    check: () => undefined,
    close: () => undefined,
  })
  .edges({
    [START]: "read",
    // @ts-expect-error Type '"check" | "close"' is not assignable to type '"__end__" | "check"'.
    read: route(["check", END], (state) => (state.verdict === "fix" ? "check" : "close")),
    check: "close",
    close: END,
  });
