/** A fan-out leads to a node that takes no input. */
import { END, fanOut, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
    check: () => undefined,
  })
  .edges({
    [START]: "read",
    // @ts-expect-error Type 'FanOut<{ readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }, "check", string, "__end__", { ...; }>' is not assignable to type '"the node check takes no input: use route, or declare the node with inputNode"'.
    read: fanOut("check", (state) => state.cart, { otherwise: END }),
    check: END,
  });
