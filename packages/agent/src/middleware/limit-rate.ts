/** Not more than so many calls in so much time, for the sake of the other side. */
import {
  checkOptions,
  defineMiddleware,
  type Middleware,
  optionNames,
  StatewrightError,
  ToolError,
} from "@statewright/core";
import { checkFlag } from "../agent/check-option.ts";
import { type Pass, passTogether, rateGate } from "../rate-gate.ts";

/** What `limitRate` takes. */
export interface LimitRateOptions {
  /** How many calls may begin within `perMs`. */
  readonly calls: number;
  readonly perMs: number;
  /** The tools that share the limit; all when absent. */
  readonly tools?: readonly string[];
  /** Calls over the limit wait for their turn (default), or the model reads when to try again. */
  readonly over?: "wait" | "refuse";
  /** Whether calls of sub-agents count too, and wait. Default true. */
  readonly tree?: boolean;
}

/** The limits that a call has passed, by the signal of its task and its id: one whose arguments change is asked about again. */
const passed: WeakMap<AbortSignal, Map<string, Pass[]>> = new WeakMap();

/**
 * Let so many calls begin in any `perMs`, over all runs that have this middleware in this process, sub-agents included.
 * Register it last: a call that a later hook refuses has used its turn. A call under several limits begins when all of them
 * have a turn for it. A call that waits holds no lock; a cancel ends its wait, and the turn is another's.
 */
export function limitRate(options: LimitRateOptions): Middleware {
  checkOptions(
    "limitRate",
    options,
    optionNames<LimitRateOptions>({ calls: true, perMs: true, tools: true, over: true, tree: true }),
  );
  const { calls, perMs, tools, over = "wait", tree = true } = options;
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
  checkFlag("limitRate", { tree });
  const limited = tools === undefined ? undefined : new Set(tools);
  const gate = rateGate({ calls, perMs });
  return defineMiddleware({
    name: "limitRate",
    required: true,
    asks: [],
    inherited: tree,
    beforeTool: async ({ call }, runtime) => {
      if (limited?.has(call.name) === false) return undefined;
      const passes = passesOf(runtime.signal, call.id);
      if (passes.some((pass) => pass.gate === gate)) return undefined;
      const turn = over === "refuse" ? gate.take(runtime.clock.now()) : undefined;
      if (typeof turn === "number")
        throw new ToolError("limit", `Too many calls of "${call.name}". Try again in ${turn} ms.`, {
          disposition: "repair",
          retryAfterMs: turn,
        });
      passes.push({ gate, tokens: 0, turn });
      if (turn === undefined) await passTogether(passes, runtime);
      return undefined;
    },
  });
}

function passesOf(task: AbortSignal, call: string): Pass[] {
  const ofTask = passed.get(task) ?? new Map<string, Pass[]>();
  passed.set(task, ofTask);
  const passes = ofTask.get(call) ?? [];
  ofTask.set(call, passes);
  return passes;
}
