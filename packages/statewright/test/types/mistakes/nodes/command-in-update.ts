/** The update of a command has a value of a wrong type. */
import { commandTargets, END, goto, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type 'Goto<"check", { total: string; }>' is not assignable to type 'GotoWithUpdate<"check", { readonly total: number; }>'.
    read: () => goto("check", { total: "3" }),
    check: () => undefined,
  })
  .edges({ [START]: "read", read: commandTargets("check"), check: END });
