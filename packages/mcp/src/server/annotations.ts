/** MCP annotations of tools, from their effect and safety. */

import type { ToolAnnotations } from "@modelcontextprotocol/server";
import type { ToolSpec } from "@statewright/core";

/** Converts effect and safety to MCP hints. Omits unspecified properties, so that hosts assume the worst case. */
export function toAnnotations({
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
