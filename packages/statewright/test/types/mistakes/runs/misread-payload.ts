/** A program misreads the payload of an open interrupt. */
import { run } from "statewright";
import { order, store } from "../shop.ts";

const result = await run(order, { store, context: { user: "ann" }, input: { amount: 1 } }).result;
if (result.status === "waiting") {
  for (const each of result.interrupts) {
    // @ts-expect-error Property 'cent' does not exist on type '{ readonly cents: number; }'. Did you mean 'cents'?
    if (each.key === "approve") void each.payload.cent;
  }
}
