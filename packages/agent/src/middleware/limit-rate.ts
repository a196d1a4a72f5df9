/** Not more than so many calls in so much time, for the sake of the other side. */
import {
  checkOptions,
  defineMiddleware,
  type Middleware,
  optionNames,
  StatewrightError,
  ToolError,
} from "@statewright/core";
import { rateGate } from "../rate-gate.ts";

/** What `limitRate` takes. */
export interface LimitRateOptions {
  /** How many calls may begin within `perMs`. */
  readonly calls: number;
  readonly perMs: number;
  /** The tools that share the limit; all when absent. */
  readonly tools?: readonly string[];
  /** Calls over the limit wait for their turn (default), or the model reads when to try again. */
  readonly over?: "wait" | "refuse";
}

/**
 * Let so many calls begin in any `perMs`, over all runs that have this middleware in this process. Register it last: a call
 * that a later hook refuses has used its turn. A call that waits holds no lock; a cancel ends its wait, and the turn is another's.
 */
export function limitRate(options: LimitRateOptions): Middleware {
  checkOptions(
    "limitRate",
    options,
    optionNames<LimitRateOptions>({ calls: true, perMs: true, tools: true, over: true }),
  );
  const { calls, perMs, tools, over = "wait" } = options;
  if (!Number.isInteger(calls) || calls < 1 || !(typeof perMs === "number" && perMs > 0 && perMs < Infinity))
    throw new StatewrightError("invalid_option", {
      what: "limitRate needs a number of calls from 1 and a time above 0",
      next: "Give limitRate({ calls: 10, perMs: 60_000 })",
    });
  if (over !== "wait" && over !== "refuse")
    throw new StatewrightError("invalid_option", {
      what: "the over of limitRate is not known",
      next: 'Give "wait" or "refuse"',
    });
  const limited = tools === undefined ? undefined : new Set(tools);
  const gate = rateGate({ calls, perMs });
  /** The calls that have a turn, by the signal of their task: one whose arguments change is asked about again. */
  const begun: WeakMap<AbortSignal, Set<string>> = new WeakMap();
  return defineMiddleware({
    name: "limitRate",
    required: true,
    asks: [],
    beforeTool: async ({ call }, runtime) => {
      if (limited?.has(call.name) === false) return undefined;
      const ofTask = begun.get(runtime.signal) ?? new Set();
      if (ofTask.has(call.id)) return undefined;
      const turn = over === "wait" ? await gate.wait(runtime) : gate.take(runtime.clock.now());
      if (typeof turn === "number")
        throw new ToolError("limit", `Too many calls of "${call.name}". Try again in ${turn} ms.`, {
          disposition: "repair",
          retryAfterMs: turn,
        });
      begun.set(runtime.signal, ofTask.add(call.id));
      return undefined;
    },
  });
}
