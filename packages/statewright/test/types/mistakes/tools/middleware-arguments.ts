/** A hook reads an argument that the tool does not have. */
import { decide, defineMiddleware } from "statewright";
import { refund } from "../shop.ts";

export const limits = defineMiddleware({
  name: "limits",
  // @ts-expect-error Property 'cent' does not exist on type '{ order: string; cents: number; }'. Did you mean 'cents'?
  beforeTool: ({ call }) => (refund.is(call) && call.args.cent > 100 ? decide.deny("too much") : decide.allow()),
});
