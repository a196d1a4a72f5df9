/** The cache of a node is a flag in place of a policy. */

import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'boolean' is not assignable to type 'CachePolicy<{ readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }, unknown>'.
    read: { run: () => undefined, cache: true },
    check: () => undefined,
  })
  .edges({ [START]: "read", read: "check", check: END });
