/** The state of the caller has no such channel. */
import { graphTool, inject } from "statewright";
import * as z from "zod";
import { returns, Shop } from "../shop.ts";

export const checkReturns = graphTool(returns, {
  name: "check_returns",
  description: "Checks the returns of the customer.",
  input: z.object({}),
  inject: { cart: inject.state(Shop, (shop) => shop.cart) },
  // @ts-expect-error Property 'totl' does not exist on type '{ readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }'. Did you mean 'total'?
  toInput: (_args, { state }) => ({ amount: state.totl }),
  toResult: ({ amount }, { state, injected }) => `${amount} ${state.total} ${injected.cart.length}`,
});
