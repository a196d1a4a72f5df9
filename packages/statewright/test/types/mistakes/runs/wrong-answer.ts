/** A resume gives an answer of a wrong type. */
import { resume } from "statewright";
import { order, store } from "../shop.ts";

const context = { user: "ann" };
// @ts-expect-error Type 'boolean' is not assignable to type '{ readonly ok: boolean; }'.
export const handle = resume(order, { store, thread: "t", context, answers: { approve: true } });
