/** A test sends an event to a graph, which takes messages only. */

import { testRun } from "@statewright/testing/vitest";
import { order } from "../shop.ts";

const t = await testRun(order, { input: { amount: 1 }, context: { user: "ann" } });
// @ts-expect-error Object literal may only specify known properties, and 'type' does not exist in type 'readonly Message[]'.
await t.send({ type: "CANCEL" });
