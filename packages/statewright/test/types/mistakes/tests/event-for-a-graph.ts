/** A test sends an event to a graph, which takes messages only. */

import { testRun } from "@statewright/testing/vitest";
import { order } from "../shop.ts";

const t = await testRun(order, { input: { amount: 1 }, context: { user: "ann" } });
// @ts-expect-error Argument of type '{ type: "CANCEL"; }' is not assignable to parameter of type '{ readonly type: "a graph takes no events: send a text or messages"; } | InboxInput'.
await t.send({ type: "CANCEL" });
