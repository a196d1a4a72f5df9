/** A node has no edge. */
import { START } from "statewright";
import { shop } from "../shop.ts";

export const graph = shop
  .nodes({
    read: () => ({ cart: ["tea"] }),
    check: () => undefined,
  })
  // @ts-expect-error Argument of type '{ __start__: string; read: string; }' is not assignable to parameter of type '"add an edge for the node check"'.
  .edges({ [START]: "read", read: "check" });
