/** Middleware that denies tools without safety metadata. */
import { decide, defineMiddleware, type Middleware } from "@statewright/core";

/** Denies calls of tools with `safety.access` "unclassified"; the model receives the reason. */
export function refuseUnclassified(): Middleware {
  return defineMiddleware({
    name: "refuseUnclassified",
    required: true,
    inherited: true,
    beforeTool: ({ tool }) =>
      tool.safety.access === "unclassified"
        ? decide.deny(
            `The tool "${tool.name}" declares no safety metadata, and such tools are disabled here. Use another tool.`,
          )
        : undefined,
  });
}
