/** A fan-out gives the tasks an input of a wrong type. */
import { END, fanOut, inputNode, START } from "statewright";
import { Item, shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
    pack: inputNode(Item, (_state, { input }) => ({ notes: [input.item] })),
  })
  .edges({
    [START]: "read",
    // @ts-expect-error Type 'FanOut<{ readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }, "pack", { item: string; count: string; }, "__end__", { ...; }>' is not assignable to type 'FanOutWithInput<"pack", { readonly item: string; readonly count: number; }>'.
    read: fanOut("pack", (state) => state.cart.map((item) => ({ item, count: "1" })), { otherwise: END }),
    pack: END,
  });
