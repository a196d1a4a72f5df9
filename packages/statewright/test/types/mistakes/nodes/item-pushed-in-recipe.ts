/** A recipe appends to a list channel. */
import { END, edit, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () =>
      edit((draft) => {
        draft.cart.push("tea");
        // @ts-expect-error Property 'push' does not exist on type 'readonly string[]'.
        draft.notes.push("read");
      }),
  })
  .edges({ [START]: "read", read: END });
