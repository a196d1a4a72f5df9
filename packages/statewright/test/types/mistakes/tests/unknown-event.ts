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
// @ts-expect-error Argument of type '{ type: "CANCLE"; }' is not assignable to parameter of type 'InboxInput | SentEvent<MachineTypes<MachineContext, NonReducibleUnknown, NonReducibleUnknown, { type: "PAY"; cents: number; } | { ...; }>>'.
await t.send({ type: "CANCLE" });
