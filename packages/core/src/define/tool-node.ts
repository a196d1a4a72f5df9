/** The tool node: answers every call of the last assistant message, in call order. */

import { StatewrightError } from "../base/errors.ts";
import { describeValue } from "../base/json.ts";
import { checkOptions, optionNames } from "../base/options.ts";
import type { Message } from "../model/message.ts";
import { checkMiddleware, type Middleware } from "../tool/middleware.ts";
import { type ToolRegistry, toolRegistry } from "../tool/registry.ts";
import type { Tool } from "../tool/tool.ts";

/** How the calls of one message share time: all at once, one by one, or in groups. */
export type ToolStrategy = "parallel" | "sequential" | { readonly batch: number };

/** What `toolNode` takes. */
export interface ToolNodeOptions<State, Context> {
  readonly tools: readonly Tool<State, Context>[];
  readonly middleware?: readonly Middleware<Context, State>[];
  readonly strategy?: ToolStrategy;
  /** How many calls may run at the same time; no limit when absent. */
  readonly maxConcurrency?: number;
  /** How an unknown tool or unfit arguments are treated: answered so that the model mends them (default), or the run fails. */
  readonly onInvalidCall?: "repair" | "fail";
}

/** A node that answers tool calls; `State` must have the channel `messages`. */
export interface ToolNode<State = unknown, Context = unknown> {
  readonly kind: "tools";
  readonly registry: ToolRegistry<State, Context>;
  readonly middleware: readonly Middleware<Context, State>[];
  readonly strategy: ToolStrategy;
  readonly maxConcurrency: number;
  readonly onInvalidCall: "repair" | "fail";
  readonly needs?: (state: State, context: Context) => void;
}

const names = optionNames<ToolNodeOptions<unknown, unknown>>({
  tools: true,
  middleware: true,
  strategy: true,
  maxConcurrency: true,
  onInvalidCall: true,
});

/** Make a tool node. Throws `invalid_option` for limits that are not whole numbers from 1, `invalid_tool` for tools that cannot be shown. */
export function toolNode<State extends { readonly messages: readonly Message[] }, Context = unknown>(
  options: ToolNodeOptions<State, Context>,
): ToolNode<State, Context> {
  checkOptions("toolNode", options, names);
  const {
    tools,
    middleware = [],
    strategy = "parallel",
    maxConcurrency = Number.POSITIVE_INFINITY,
    onInvalidCall = "repair",
  } = options;
  if (tools === undefined) {
    throw new StatewrightError("invalid_tool", {
      what: "the tools of toolNode are undefined",
      next: "Give toolNode({ tools: [tool, …] })",
    });
  }
  if (maxConcurrency !== Number.POSITIVE_INFINITY) checkCount("maxConcurrency", maxConcurrency);
  if (typeof strategy === "object" && strategy !== null) checkCount("strategy.batch", strategy.batch);
  else if (strategy !== "parallel" && strategy !== "sequential")
    throw unfit("strategy", strategy, '"parallel", "sequential" or { batch: a whole number from 1 }');
  if (onInvalidCall !== "repair" && onInvalidCall !== "fail")
    throw unfit("onInvalidCall", onInvalidCall, '"repair" or "fail"');
  checkMiddleware(middleware);
  return Object.freeze({
    kind: "tools",
    registry: toolRegistry(tools),
    middleware,
    strategy,
    maxConcurrency,
    onInvalidCall,
  });
}

function checkCount(name: string, value: number): void {
  if (Number.isInteger(value) && value >= 1) return;
  throw unfit(name, value, "a whole number from 1");
}

function unfit(name: string, value: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `${name} is ${describeValue(value)}`, next: `Give ${wanted}` });
}
