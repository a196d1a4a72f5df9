/** A recipe assigns a channel that has a reducer. */
import { END, edit, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () =>
      edit((draft) => {
        draft.verdict = "fix";
        // @ts-expect-error Cannot assign to 'total' because it is a read-only property.
        draft.total = 3;
      }),
  })
  .edges({ [START]: "read", read: END });
