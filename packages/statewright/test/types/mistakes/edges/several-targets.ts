/** A route returns several targets without the option `many`. */
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
    // @ts-expect-error Type 'readonly ["check", "close"]' is not assignable to type '"check" | "close"'.
    read: route(["check", "close"], () => ["check", "close"]),
    check: END,
    close: END,
  });
