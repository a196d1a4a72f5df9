/** A test expects a call of a tool of another agent. */

import { call, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { createAgent, defineTool } from "statewright";
import { expect } from "vitest";
import * as z from "zod";
import { refund, search, Visit } from "../shop.ts";

const add = defineTool({
  name: "add",
  description: "Adds an item to the cart.",
  input: z.object({ item: z.string() }),
  run: ({ item }) => item,
});
const agent = createAgent({
  name: "support",
  model: scriptedModel([call(search, { query: "tea" }), say("Tea")]),
  context: Visit,
  tools: [search, refund],
});
const t = await testRun(agent, { input: "Do you have tea?", context: { user: "ann" } });
expect(t).toHaveCalledTools([
  call(search, { query: "tea", limit: 3 }),
  call(refund, { order: expect.any(String), cents: 3 }),
]);
// @ts-expect-error Type 'ScriptedCall<"add", JsonObject>' is not assignable to type 'ExpectedCall<"refund" | "search">'.
expect(t).toHaveCalledTools([call(add, { item: "tea" })]);
