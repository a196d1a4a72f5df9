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
// @ts-expect-error Object literal may only specify known properties, but 'CANCLE' does not exist in type '{ readonly CANCEL?: {}; readonly PAY?: { readonly cents: number; }; } & EngineAnswers<"CANCEL" | "PAY"> & { readonly [id: `${string}:${string}`]: unknown; readonly [key: `${string}.approve`]: unknown; readonly [key: `${string}.in_doubt`]: unknown; }'. Did you mean to write 'CANCEL'?
export const handle = resume(payment, { store, thread: "t", answers: { CANCLE: {} } });
