/** An asynchronous body with several statements returns a value of another type. */

import { commandTargets, END, goto, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type '(state: { readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }) => Promise<Goto<"check", never> | { ...; }>' is not assignable to type 'NodeReturning<Promise<Goto<"check", never> | { readonly total: number; }>>'.
    read: async (state) => {
      if (state.cart.length > 3) return goto("check");
      return { total: "none" };
    },
    check: (state) => ({ total: state.cart.length }),
  })
  .edges({ [START]: "read", read: commandTargets("check", END), check: END });
