/** A scripted model calls a tool without a required argument. */

import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent } from "statewright";
import { search } from "../shop.ts";

export const agent = createAgent({
  name: "support",
  // @ts-expect-error Type 'ScriptedModel<{ readonly name: "search"; readonly args: { readonly limit: 3; }; }>' is not assignable to type '"the script calls search without the argument query"'.
  model: scriptedModel([call("search", { limit: 3 }), say("Tea")]),
  tools: [search],
});
