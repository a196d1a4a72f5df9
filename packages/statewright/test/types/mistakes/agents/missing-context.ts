/** An agent lacks the context that a tool injects. */

import { say, scriptedModel } from "@statewright/testing";
import { createAgent } from "statewright";
import { refund, search } from "../shop.ts";

// @ts-expect-error Type 'DefinedTool<"refund", { order: string; cents: number; }, unknown, { readonly user: string; }, string, unknown, { readonly order: string; readonly cents: number; }>' is not assignable to type 'Missing<"`context` is required by tool refund", { readonly user: string; }>'.
export const agent = createAgent({ name: "support", model: scriptedModel([say("Hello")]), tools: [search, refund] });
