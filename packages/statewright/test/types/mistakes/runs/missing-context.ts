/** A run lacks the context of its graph. */
import { run } from "statewright";
import { order, store } from "../shop.ts";

// @ts-expect-error Argument of type '{ store: MemoryStore; input: { amount: number; }; }' is not assignable to parameter of type '{ readonly context: { readonly user: string; }; } & { readonly input: { readonly amount: number; readonly note?: string | undefined; }; } & RunSettings & BranchOption<BranchName<"pay" | "ship">> & BreakpointOption<...> & StartOptions & { ...; }'.
export const handle = run(order, { store, input: { amount: 1 } });
