/** Middleware that asks a person before tool calls, based on the safety metadata of tools. */
import {
  type AskOptions,
  approval,
  decide,
  defineMiddleware,
  type Middleware,
  type ToolCall,
  type ToolSpec,
} from "@statewright/core";
import { checkOptions, listOptionNames } from "@statewright/core/adapter";
import { checkAskOptions } from "./check-ask-options.ts";

/** Calls that need an approval, and the expiry of the interrupt. */
export interface ConfirmOptions extends AskOptions {
  /**
   * Decides for tools with `safety.confirm` `policy` or absent: a reason or true to ask, false to run. Default: asks
   * for tools that are destructive, spend money or start processes. A tool with `always` is asked about in any case,
   * with the reason of the policy if there is one.
   */
  readonly policy?: (call: ToolCall, tool: ToolSpec) => boolean | string;
}

const optionList = listOptionNames<ConfirmOptions>({ policy: true, expiresMs: true, onExpire: true });

/**
 * Interrupts the run under the key `approve` before a tool call: always for `safety.confirm: "always"`, never for
 * `"never"`, by `policy` for all other tools.
 */
export function confirmTools(options: ConfirmOptions = {}): Middleware {
  checkOptions("confirmTools", options, optionList);
  const { policy = isDangerous, ...askOptions } = options;
  checkAskOptions("confirmTools", askOptions);
  return defineMiddleware({
    name: "confirmTools",
    required: true,
    interrupts: { approve: approval },
    beforeTool: ({ call, tool }) => {
      const { confirm } = tool.safety;
      if (confirm === "never") return undefined;
      const decision = policy(call, tool);
      if (decision === false && confirm !== "always") return undefined;
      const reason = typeof decision === "string" ? decision : `${tool.label} needs approval`;
      return decide.interrupt(call, reason, askOptions);
    },
  });
}

function isDangerous(_call: ToolCall, { safety }: ToolSpec): boolean {
  const { access, spend = false, process = false } = safety;
  return access === "destructive" || spend !== false || process;
}
