/** A list of the tools that may be called. */
import {
  checkOptions,
  defineMiddleware,
  deny,
  type Middleware,
  optionNames,
  StatewrightError,
  type ToolCall,
  type ToolSpec,
} from "@statewright/core";

/** What `allowTools` takes besides the list. */
export interface AllowOptions {
  /** Whether the model reads that the tool is not allowed and goes on (default), or the run fails. */
  readonly onViolation?: "repair" | "fail";
}

/** Refuse every call that is not of one of these tools, or that the function does not allow; each is told by `tool.denied`. */
export function allowTools(
  allowed: readonly string[] | ((call: ToolCall, tool: ToolSpec) => boolean),
  options: AllowOptions = {},
): Middleware {
  checkOptions("allowTools", options, optionNames<AllowOptions>({ onViolation: true }));
  const { onViolation = "repair" } = options;
  const isList = Array.isArray(allowed) && allowed.every((name) => typeof name === "string");
  if (!isList && typeof allowed !== "function")
    throw new StatewrightError("invalid_option", {
      what: "allowTools got neither a list of names nor a function",
      next: 'Give allowTools(["search", …])',
    });
  if (onViolation !== "repair" && onViolation !== "fail")
    throw new StatewrightError("invalid_option", {
      what: "the onViolation of allowTools is not known",
      next: 'Give "repair" or "fail"',
    });
  const list: ReadonlySet<string> = new Set(typeof allowed === "function" ? [] : allowed);
  const mayCall = typeof allowed === "function" ? allowed : (call: ToolCall) => list.has(call.name);
  return defineMiddleware({
    name: "allowTools",
    required: true,
    asks: [],
    beforeTool: ({ call, tool }) =>
      mayCall(call, tool) === true
        ? undefined
        : deny(`The tool "${call.name}" is not allowed here.`, { fail: onViolation === "fail" }),
  });
}
