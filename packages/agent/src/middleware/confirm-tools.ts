/** Confirmation by what tools say of themselves: a person is asked before a call of those that want it. */
import {
  type AskOptions,
  checkOptions,
  defineMiddleware,
  interruptFor,
  type Middleware,
  optionNames,
  type ToolCall,
  type ToolSpec,
} from "@statewright/core";
import { checkAsking } from "./check-ask-options.ts";

/** What `confirmTools` takes. */
export interface ConfirmOptions extends AskOptions {
  /**
   * Whether to ask about a call of a tool whose `safety.confirm` is `policy` or absent: a reason, true, or false. Default:
   * tools that destroy, spend or start processes.
   */
  readonly policy?: (call: ToolCall, tool: ToolSpec) => boolean | string;
}

const names = optionNames<ConfirmOptions>({ policy: true, expiresMs: true, onExpire: true });

/**
 * Ask a person under the key `approve` before a call: always for tools with `safety.confirm: "always"`, never for those with
 * `"never"`, by `policy` for all others.
 */
export function confirmTools(options: ConfirmOptions = {}): Middleware {
  checkOptions("confirmTools", options, names);
  const { policy = isDangerous, ...asking } = options;
  checkAsking("confirmTools", asking);
  return defineMiddleware({
    name: "confirmTools",
    required: true,
    asks: ["approve"],
    beforeTool: ({ call, tool }) => {
      const { confirm } = tool.safety;
      if (confirm === "never") return undefined;
      const wanted = confirm === "always" || policy(call, tool);
      if (wanted === false) return undefined;
      return interruptFor(call, wanted === true ? `${tool.label} needs a yes` : wanted, asking);
    },
  });
}

function isDangerous(_call: ToolCall, { safety }: ToolSpec): boolean {
  const { access, spend = false, process = false } = safety;
  return access === "destructive" || spend !== false || process;
}
