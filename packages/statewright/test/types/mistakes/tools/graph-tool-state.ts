/** The mapping of a graph tool reads a channel that the state of the caller does not have. */
import { graphTool, inject } from "statewright";
import * as z from "zod";
import { returns, Shop } from "../shop.ts";

export const checkReturns = graphTool(returns, {
  name: "check_returns",
  description: "Checks the returns of the customer.",
  input: z.object({}),
  inject: { shop: inject.state(Shop, (shop) => shop) },
  // @ts-expect-error Property 'totl' does not exist on type '{ readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }'. Did you mean 'total'?
  toInput: (_args, { injected }) => ({ amount: injected.shop.totl }),
  toResult: ({ amount }) => String(amount),
});
