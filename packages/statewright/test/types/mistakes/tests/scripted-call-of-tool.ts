/** A scripted model calls a tool with an argument that the tool does not have. */

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
// @ts-expect-error Object literal may only specify known properties, but 'limti' does not exist in type '{ readonly query: string; readonly limit?: number | undefined; }'. Did you mean to write 'limit'?
export const model = scriptedModel([call(search, { query: "tea", limti: 3 }), say("Tea")]);
