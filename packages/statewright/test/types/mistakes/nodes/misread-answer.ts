/** A node reads a part of an answer that the interrupt does not declare. */
import { END, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: async (state, { interrupt }) => {
      const answer = await interrupt("approve", { payload: { cents: state.total } });
      // @ts-expect-error Property 'okay' does not exist on type '{ readonly ok: boolean; }'.
      return answer.okay ? { notes: ["approved"] } : undefined;
    },
  })
  .edges({ [START]: "read", read: END });
