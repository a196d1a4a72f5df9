/** A graph tool creates an input that lacks a channel. */
import { graphTool } from "statewright";
import * as z from "zod";
import { returns } from "../shop.ts";

export const checkReturns = graphTool(returns, {
  name: "check_returns",
  description: "Checks the returns of the customer.",
  input: z.object({ note: z.string() }),
  // @ts-expect-error Property 'amount' is missing in type '{ note: string; }' but required in type '{ readonly amount: number; readonly note?: string | undefined; }'.
  toInput: ({ note }) => ({ note }),
  toResult: ({ amount }) => String(amount),
});
