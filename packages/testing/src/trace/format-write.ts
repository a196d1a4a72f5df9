/** Text form of a channel write in a single line: step, values of the nodes, and resulting channel value. */

import { formatValue } from "../order/first-difference.ts";
import { formatNames } from "../run/explain-run.ts";
import type { ChannelWrite } from "./trace.ts";

/** Formats ` step 2, given 7 by "price" ("a"): 7`. */
export function formatWrite({ step, nodes, nodeValues, value }: ChannelWrite): string {
  const writers =
    nodeValues.length === 0
      ? `by ${formatNames(nodes, "the input")}`
      : `given ${nodeValues.map(formatNodeValue).join(", ")}`;
  return `  step ${step}, ${writers}: ${formatValue(value)}`;
}

function formatNodeValue({ node, input, value }: ChannelWrite["nodeValues"][number]): string {
  return `${formatValue(value)} by "${node}"${input === undefined ? "" : ` (${formatValue(input)})`}`;
}
