/** What hosts are told of tools, from what the tools say of themselves. */

import type { ToolAnnotations } from "@modelcontextprotocol/server";
import type { ToolSpec } from "@statewright/core";

/** Hints for hosts. What a tool does not say is left out, so that hosts assume the worst of it. */
export function annotationsOf({
  label,
  effect,
  safety,
}: Pick<ToolSpec, "label" | "effect" | "safety">): ToolAnnotations {
  const { access, network } = safety;
  return {
    title: label,
    ...(access === "unclassified"
      ? {}
      : { readOnlyHint: access === "read", destructiveHint: access === "destructive" }),
    ...(effect === "once" ? {} : { idempotentHint: true }),
    ...(network === undefined ? {} : { openWorldHint: network !== false }),
  };
}
