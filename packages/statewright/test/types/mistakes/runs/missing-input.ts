/** A run lacks a channel of its input. */
import { run } from "statewright";
import { order, store } from "../shop.ts";

// @ts-expect-error Property 'amount' is missing in type '{ note: string; }' but required in type '{ readonly amount: number; readonly note?: string | undefined; }'.
export const handle = run(order, { store, context: { user: "ann" }, input: { note: "gift" } });
