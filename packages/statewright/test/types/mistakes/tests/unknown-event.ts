/** A test sends an event that the durable machine does not have. */

import { testRun } from "@statewright/testing/vitest";
import { durableMachine } from "statewright";
import { setup } from "xstate";

const machine = setup({
  types: { events: {} as { type: "PAY"; cents: number } | { type: "CANCEL" } },
}).createMachine({
  id: "payment",
  initial: "open",
  states: { open: { on: { PAY: "paid", CANCEL: "paid" } }, paid: { type: "final" } },
});

const t = await testRun(durableMachine(machine, { version: 1 }), { input: {} });
await t.send({ type: "CANCEL" });
await t.send({ type: "PAY", cents: 3 });
// @ts-expect-error Type '"CANCLE"' is not assignable to type '"CANCEL" | "PAY"'. Did you mean '"CANCEL"'?
await t.send({ type: "CANCLE" });
