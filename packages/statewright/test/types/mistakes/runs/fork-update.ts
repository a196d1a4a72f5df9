/** A fork updates a channel with a value of a wrong type. */
import { fork } from "statewright";
import { order, store } from "../shop.ts";

// @ts-expect-error Type 'string' is not assignable to type 'number | Overwrite<number> | undefined'.
export const branch = await fork(order, { store, thread: "t", at: 1, name: "other", update: { amount: "2" } });
