/** A node returns a value of a wrong type. */
import { END, route, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
    // @ts-expect-error Type '"fix" | "send"' is not assignable to type '"fix" | "ship" | null'.
    check: (state) => ({ verdict: state.cart.length > 3 ? "send" : "fix" }),
    close: () => undefined,
  })
  .edges({
    [START]: "read",
    read: "check",
    check: route(["read", "close"], (state) => (state.verdict === "fix" ? "read" : "close")),
    close: END,
  });
