/** An agent allows a tool that it does not have. */

import { say, scriptedModel } from "@statewright/testing";
import { createAgent } from "statewright";
import { search } from "../shop.ts";

export const agent = createAgent({
  name: "support",
  model: scriptedModel([say("Hello")]),
  tools: [search],
  // @ts-expect-error Type '"serach"' is not assignable to type '"search"'.
  allowedTools: ["serach"],
});
