/** The event of a durable machine has a payload of a wrong type. */
import { durableMachine, resume } from "statewright";
import { setup } from "xstate";
import { store } from "../shop.ts";

const machine = setup({
  types: { events: {} as { type: "PAY"; cents: number } | { type: "CANCEL" } },
}).createMachine({
  id: "payment",
  initial: "open",
  states: { open: { on: { PAY: "paid", CANCEL: "paid" } }, paid: { type: "final" } },
});

const payment = durableMachine(machine, { version: 1 });
// @ts-expect-error Type 'string' is not assignable to type 'number'.
export const handle = resume(payment, { store, thread: "t", answers: { PAY: { cents: "300" } } });
