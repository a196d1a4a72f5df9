/** A durable machine gets an event that it does not have. */
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
// @ts-expect-error ?
export const handle = resume(payment, { store, thread: "t", answers: { CANCLE: {} } });
