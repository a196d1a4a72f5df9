/** A scripted model calls a tool with a hidden argument. */

import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent } from "statewright";
import { refund, Visit } from "../shop.ts";

export const agent = createAgent({
  name: "support",
  // @ts-expect-error Type 'ScriptedModel<{ readonly name: "refund"; readonly args: { readonly order: "o1"; readonly cents: 300; readonly user: "ann"; }; }>' is not assignable to type '"the script calls refund with user, which is no argument of the tool"'.
  model: scriptedModel([call("refund", { order: "o1", cents: 300, user: "ann" }), say("Done")]),
  context: Visit,
  tools: [refund],
});
