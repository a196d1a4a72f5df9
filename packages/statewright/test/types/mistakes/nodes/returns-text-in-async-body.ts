/** An asynchronous body returns a text in place of an update. */

import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type '() => Promise<string>' is not assignable to type 'NodeReturning<Promise<"return an update of the state, or a command such as goto(name)">>'.
    read: async () => {
      await Promise.resolve();
      return "done";
    },
    check: () => undefined,
  })
  .edges({ [START]: "read", read: "check", check: END });
