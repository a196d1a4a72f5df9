/** A test expects a call of a tool that the agent does not have. */

import { call, say, scriptedModel } from "@statewright/testing";
import { testRun } from "@statewright/testing/vitest";
import { createAgent } from "statewright";
import { expect } from "vitest";
import { search } from "../shop.ts";

const model = scriptedModel([call("search", { query: "tea" }), say("Tea")]);
const agent = createAgent({ name: "support", model, tools: [search] });
const t = await testRun(agent, { input: "Do you have tea?" });
// @ts-expect-error Type '"serach"' is not assignable to type '"search"'.
expect(t).toHaveCalledTools([{ name: "serach", args: { query: "tea" } }]);
