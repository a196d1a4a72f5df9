/** A breakpoint names a node that does not exist. */
import { run } from "statewright";
import { order, store } from "../shop.ts";

const context = { user: "ann" };
const input = { amount: 1 };
// @ts-expect-error Type '"shp"' is not assignable to type '"pay" | "ship"'. Did you mean '"ship"'?
export const handle = run(order, { store, context, input, breakpoints: { before: ["shp"] } });
