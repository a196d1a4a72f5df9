/** A node raises an interrupt that the graph does not declare. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: async (_state, { interrupt }) => {
      // @ts-expect-error Argument of type '"address"' is not assignable to parameter of type '"approve" | "name"'.
      const address = await interrupt("address");
      return { notes: [String(address)] };
    },
  })
  .edges({ [START]: "read", read: END });
