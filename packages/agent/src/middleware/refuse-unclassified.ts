/** No call of a tool that says nothing of what it touches. */
import { defineMiddleware, deny, type Middleware } from "@statewright/core";

/** Refuse calls of tools without safety metadata: their `safety.access` is `unclassified`. The model reads why. */
export function refuseUnclassified(): Middleware {
  return defineMiddleware({
    name: "refuseUnclassified",
    required: true,
    asks: [],
    inherited: true,
    beforeTool: ({ tool }) =>
      tool.safety.access === "unclassified"
        ? deny(`The tool "${tool.name}" does not say what it touches, and such tools are off here. Use another tool.`)
        : undefined,
  });
}
