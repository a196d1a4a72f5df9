/** An agent has an option that agents do not have. */

import { say, scriptedModel } from "@statewright/testing";
import { createAgent } from "statewright";
import { search } from "../shop.ts";

export const agent = createAgent({
  name: "support",
  model: scriptedModel([say("Hello")]),
  tools: [search],
  // @ts-expect-error Object literal may only specify known properties, but 'instruction' does not exist in type 'Omit<AgentOptions<NoState, unknown, unknown, never, "search", ToolChoiceNames<readonly [DefinedTool<"search", { query: string; limit?: number | undefined; }, unknown, unknown, string, unknown, { readonly query: string; readonly limit?: number | undefined; }>], unknown>>, "model" | "tools"> & { ...; }'. Did you mean to write 'instructions'?
  instruction: "Answer in one sentence.",
});
