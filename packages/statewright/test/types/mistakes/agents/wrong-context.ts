/** The context of an agent is not the context that a tool injects. */

import { say, scriptedModel } from "@statewright/testing";
import { createAgent, defineContext } from "statewright";
import * as z from "zod";
import { refund, search } from "../shop.ts";

export const agent = createAgent({
  name: "support",
  model: scriptedModel([say("Hello")]),
  context: defineContext({ user: z.number() }),
  // @ts-expect-error Type 'DefinedTool<"refund", { order: string; cents: number; }, unknown, { readonly user: string; }, string, unknown, { readonly order: string; readonly cents: number; }>' is not assignable to type 'Missing<"`context` is required by tool refund", { readonly user: string; }>'.
  tools: [search, refund],
});
