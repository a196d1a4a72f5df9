/** A subgraph gets an input that lacks a channel. */
import { END, START, subgraph } from "statewright";
import { returns, shop } from "../shop.ts";

export const graph = shop
  .nodes({
    check: subgraph(returns, {
      // @ts-expect-error Property 'amount' is missing in type '{ note: string | undefined; }' but required in type '{ readonly amount: number; readonly note?: string | undefined; }'.
      input: (state) => ({ note: state.cart[0] }),
      output: ({ amount }) => ({ total: amount }),
    }),
  })
  .edges({ [START]: "check", check: END });
