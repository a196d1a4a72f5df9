/** A write of a channel in one line: which step, what each node gave, and what the channel was then. */

import { textOfValue } from "../order/first-difference.ts";
import { listed } from "../run/explain-run.ts";
import type { ChannelWrite } from "./trace.ts";

/** As `  step 2, given 7 by "price" ("a"): 7`. */
export function writeText({ step, nodes, given, value }: ChannelWrite): string {
  const by = given.length === 0 ? `by ${listed(nodes, "the input")}` : `given ${given.map(givenText).join(", ")}`;
  return `  step ${step}, ${by}: ${textOfValue(value)}`;
}

function givenText({ node, input, value }: ChannelWrite["given"][number]): string {
  return `${textOfValue(value)} by "${node}"${input === undefined ? "" : ` (${textOfValue(input)})`}`;
}
