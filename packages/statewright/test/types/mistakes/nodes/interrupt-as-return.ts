/** A body returns the answer of an interrupt as its update. */

import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'Promise<{ readonly ok: boolean; }>' is not assignable to type 'Promise<{ readonly ok: "the state has no channel ok"; }>'.
    read: (_state, { interrupt }) => interrupt("approve", { payload: { cents: 5 } }),
    check: () => undefined,
  })
  .edges({ [START]: "read", read: "check", check: END });
