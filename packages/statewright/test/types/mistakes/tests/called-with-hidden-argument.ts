/** A test expects a call with a hidden argument. */

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
// @ts-expect-error Object literal may only specify known properties, and 'user' does not exist in type '{ readonly order: string; readonly cents: number; }'.
expect(t).toHaveCalledTools([call(refund, { order: "o1", cents: 3, user: "ann" })]);
