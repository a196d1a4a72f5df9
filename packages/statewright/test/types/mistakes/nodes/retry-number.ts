/** The retry of a node is a number in place of a policy. */

import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'number' is not assignable to type 'RetryPolicy<(error: unknown, attempt: number) => boolean>'.
    read: { run: () => undefined, retry: 3 },
    check: () => undefined,
  })
  .edges({ [START]: "read", read: "check", check: END });
