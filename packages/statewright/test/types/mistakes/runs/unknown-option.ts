/** A run has an option that runs do not have. */
import { run } from "statewright";
import { order, store } from "../shop.ts";

// @ts-expect-error Object literal may only specify known properties, but 'thred' does not exist in type '{ readonly context: { readonly user: string; }; } & { readonly input: { readonly amount: number; readonly note?: string | undefined; }; } & RunSettings & BranchOption<BranchName<"pay" | "ship">> & BreakpointOption<...> & StartOptions & { ...; }'. Did you mean to write 'thread'?
export const handle = run(order, { store, thred: "t", context: { user: "ann" }, input: { amount: 1 } });
