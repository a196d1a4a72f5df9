/** A body writes the promise of a step in place of its value. */

import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'Promise<number>' is not assignable to type 'number'.
    read: (_state, { step }) => ({ total: step("count", () => 5) }),
    check: () => undefined,
  })
  .edges({ [START]: "read", read: "check", check: END });
