/** A test expects a call with an argument of a wrong type. */

import { call, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { createAgent } from "statewright";
import { expect } from "vitest";
import { refund, search, Visit } from "../shop.ts";

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
// @ts-expect-error Type 'number' is not assignable to type 'string'.
expect(t).toHaveCalledTools([call(search, { query: 3 })]);
