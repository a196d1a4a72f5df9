/** A graph lacks the channel that a tool injects. */
import { channel, defineGraph, defineState, defineTool, END, inject, START, toolNode } from "statewright";
import * as z from "zod";
import { Shop } from "../shop.ts";

const count = defineTool({
  name: "count",
  description: "Counts the items of the cart.",
  input: z.object({}),
  inject: { cart: inject.state(Shop, (shop) => shop.cart) },
  run: (_args, { injected }) => String(injected.cart.length),
});

export const graph = defineGraph({ name: "plain", state: defineState({ messages: channel.messages() }) })
  .nodes({
    // @ts-expect-error Type 'ToolNode<{ readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }, unknown, "count">' is not assignable to type 'Missing<"a tool injects channels that the state of the graph lacks", { readonly cart: readonly string[]; readonly verdict: "fix" | "ship" | null; readonly notes: readonly string[]; readonly total: number; readonly messages: readonly Message[]; }>'.
    tools: toolNode({ tools: [count] }),
  })
  .edges({ [START]: "tools", tools: END });
