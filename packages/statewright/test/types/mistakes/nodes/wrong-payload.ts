/** A node raises an interrupt with a payload of a wrong type. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: async (state, { interrupt }) => {
      // @ts-expect-error Type 'string' is not assignable to type 'number'.
      const { ok } = await interrupt("approve", { payload: { cents: String(state.total) } });
      return ok ? { notes: ["approved"] } : undefined;
    },
  })
  .edges({ [START]: "read", read: END });
