/** Middleware that allows only listed tools. */

import { decide, defineMiddleware, type Middleware, type ToolCall, type ToolSpec } from "@statewright/core";
import { checkChoice, checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";

/** Effect of a call that is not allowed. */
export interface AllowOptions {
  /** `repair` (default): the model receives an error result and continues. `fail`: the run fails. */
  readonly onViolation?: "repair" | "fail";
}

/** Denies every call of a tool outside the list, or rejected by the function; each denial emits `tool.denied`. */
export function allowTools(
  allowed: readonly string[] | ((call: ToolCall, tool: ToolSpec) => boolean),
  options: AllowOptions = {},
): Middleware {
  checkOptions("allowTools", options, listOptionNames<AllowOptions>({ onViolation: true }));
  const { onViolation = "repair" } = options;
  const isList = Array.isArray(allowed) && allowed.every((name) => typeof name === "string");
  if (!isList && typeof allowed !== "function")
    throw invalidOption({
      where: "allowTools",
      expected: "a list of tool names or a function",
      got: allowed,
      fix: 'Pass allowTools(["search", …])',
    });
  checkChoice("allowTools", { onViolation }, ["repair", "fail"]);
  const allowedNames: ReadonlySet<string> = new Set(typeof allowed === "function" ? [] : allowed);
  const mayCall = typeof allowed === "function" ? allowed : (call: ToolCall) => allowedNames.has(call.name);
  return defineMiddleware({
    name: "allowTools",
    required: true,
    beforeTool: ({ call, tool }) =>
      mayCall(call, tool) === true
        ? undefined
        : decide.deny(`The tool "${call.name}" is not allowed here.`, { fail: onViolation === "fail" }),
  });
}
