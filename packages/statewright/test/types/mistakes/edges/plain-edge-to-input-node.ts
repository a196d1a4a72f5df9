/** A plain edge leads to a node that takes an input. */
import { END, inputNode, START } from "statewright";
import { Item, shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
    pack: inputNode(Item, (_state, { input }) => ({ notes: [input.item] })),
  })
  .edges({
    [START]: "read",
    // @ts-expect-error Type '"pack"' is not assignable to type '"the node pack takes an input: use fanOut"'.
    read: "pack",
    pack: END,
  });
