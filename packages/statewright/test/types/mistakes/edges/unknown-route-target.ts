/** A route declares a target that is no node. */
import { END, route, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
    check: () => undefined,
  })
  .edges({
    [START]: "read",
    // @ts-expect-error Type 'Route<{ readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }, "__end__" | "chekc", { ...; }>' is not assignable to type '"there is no node chekc"'.
    read: route(["chekc", END], (state) => (state.verdict === "fix" ? "chekc" : END)),
    check: END,
  });
