/** A route reads a channel that the state does not have. */
import { END, route, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
    check: () => undefined,
  })
  .edges({
    [START]: "read",
    // @ts-expect-error Property 'verdct' does not exist on type '{ readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }'. Did you mean 'verdict'?
    read: route(["check", END], (state) => (state.verdct === "fix" ? "check" : END)),
    check: END,
  });
