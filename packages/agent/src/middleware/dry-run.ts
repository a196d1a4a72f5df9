/** Middleware that answers calls of tools with side effects without running the tools. */

import { decide, defineMiddleware, type Middleware, type ToolSpec } from "@statewright/core";
import { checkOptions, listOptionNames } from "@statewright/core/adapter";

/** Tools that run in a dry run. */
export interface DryRunOptions {
  /**
   * Returns true for tools that run nevertheless. Default: tools with `read` access, and unclassified tools with the
   * effect `pure`.
   */
  readonly mayRun?: (tool: ToolSpec) => boolean;
}

/** Answers calls of tools with side effects without running the tools, also in sub-agents. */
export function dryRun(options: DryRunOptions = {}): Middleware {
  checkOptions("dryRun", options, listOptionNames<DryRunOptions>({ mayRun: true }));
  const { mayRun = isHarmless } = options;
  return defineMiddleware({
    name: "dryRun",
    required: true,
    inherited: true,
    beforeTool: ({ tool }) =>
      mayRun(tool) === true
        ? undefined
        : decide.respond(
            `This is a dry run: "${tool.name}" was not called. Otherwise the call would have run with these arguments.`,
          ),
  });
}

function isHarmless({ safety, effect }: ToolSpec): boolean {
  return safety.access === "read" || (safety.access === "unclassified" && effect === "pure");
}
