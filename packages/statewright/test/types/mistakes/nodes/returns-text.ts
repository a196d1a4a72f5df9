/** A node returns the name of the next node instead of a command. */
import { commandTargets, END, goto, START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    // @ts-expect-error Type '"check"' is not assignable to type '"return an update of the state, or a command such as goto(name)"'.
    read: () => "check" as const,
    check: (state) => (state.cart.length > 3 ? goto("close") : goto("read")),
    close: () => undefined,
  })
  .edges({ [START]: "read", read: "check", check: commandTargets("close", "read"), close: END });
