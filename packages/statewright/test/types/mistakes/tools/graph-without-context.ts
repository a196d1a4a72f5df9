/** A graph without a context has a tool that injects from the context. */
import { defineGraph, END, START, toolNode } from "statewright";
import { refund, Shop } from "../shop.ts";

export const graph = defineGraph({ name: "plain", state: Shop })
  .nodes({
    // @ts-expect-error Type 'ToolNode<{ readonly messages: readonly Message[]; }, { readonly user: string; }, "refund">' is not assignable to type 'Missing<"a tool injects from the context: add `context` to defineGraph", { readonly user: string; }>'.
    tools: toolNode({ tools: [refund] }),
  })
  .edges({ [START]: "tools", tools: END });
