/** A scripted model calls a tool with an argument of a wrong type. */

import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent } from "statewright";
import { search } from "../shop.ts";

export const agent = createAgent({
  name: "support",
  // @ts-expect-error Type 'ScriptedModel<{ readonly name: "search"; readonly args: { readonly query: 3; }; }>' is not assignable to type '"the script calls search with another type of the argument query"'.
  model: scriptedModel([call("search", { query: 3 }), say("Tea")]),
  tools: [search],
});
