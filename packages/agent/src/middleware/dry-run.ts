/** Nothing is written: calls of tools that could are answered in their place. */
import {
  checkOptions,
  defineMiddleware,
  type Middleware,
  optionNames,
  respond,
  type ToolSpec,
} from "@statewright/core";

/** What `dryRun` takes. */
export interface DryRunOptions {
  /** Whether a tool may run all the same. Default: those with the access `read`, and pure ones that say nothing. */
  readonly mayRun?: (tool: ToolSpec) => boolean;
}

/** Answer calls of tools that may change something with what would have been done, and run none of them, those of sub-agents neither. */
export function dryRun(options: DryRunOptions = {}): Middleware {
  checkOptions("dryRun", options, optionNames<DryRunOptions>({ mayRun: true }));
  const { mayRun = isHarmless } = options;
  return defineMiddleware({
    name: "dryRun",
    required: true,
    inherited: true,
    beforeTool: ({ tool }) =>
      mayRun(tool) === true
        ? undefined
        : respond(`This is a dry run: "${tool.name}" was not called. It would have been called with these arguments.`),
  });
}

function isHarmless({ safety, effect }: ToolSpec): boolean {
  return safety.access === "read" || (safety.access === "unclassified" && effect === "pure");
}
