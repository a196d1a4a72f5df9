/** Middleware that limits the rate of tool calls, to protect external services. */

import { defineMiddleware, type Middleware, ToolError } from "@statewright/core";
import { checkChoice, checkFlag, checkOptions, invalidOption, listOptionNames } from "@statewright/core/adapter";
import { acquireAll, type Pass, RateGate } from "../rate-gate.ts";

/** Rate of tool calls, the limited tools, and the effect of a reached limit. */
export interface LimitRateOptions {
  /** Maximum calls started within `perMs` milliseconds. */
  readonly calls: number;
  /** Length of the period in milliseconds. */
  readonly perMs: number;
  /** Tools that share the limit. Default: all tools. */
  readonly tools?: readonly string[];
  /**
   * Action above the limit: `wait` delays the call (default), `refuse` answers with an error that tells the model
   * when to retry.
   */
  readonly atLimit?: "wait" | "refuse";
  /** True when calls of sub-agents count and wait too. Default true. */
  readonly tree?: boolean;
}

/**
 * Passes by the signal of the task and the call id: a call with changed arguments runs the hook again, but needs no
 * second slot.
 */
const passesByTask: WeakMap<AbortSignal, Map<string, Pass[]>> = new WeakMap();

/**
 * Limits tool calls started within any `perMs`, over all runs with this middleware in this process, including
 * sub-agents. Register this middleware last: a call denied by a later hook has used its slot. A call under several
 * limits starts when all limits allow the call. A waiting call holds no lock; a cancel ends the wait and releases the
 * slot.
 */
export function limitRate(options: LimitRateOptions): Middleware {
  checkOptions(
    "limitRate",
    options,
    listOptionNames<LimitRateOptions>({ calls: true, perMs: true, tools: true, atLimit: true, tree: true }),
  );
  const { calls, perMs, tools, atLimit = "wait", tree = true } = options;
  const fix = "Pass limitRate({ calls: 10, perMs: 60_000 })";
  if (!(Number.isInteger(calls) && calls >= 1))
    throw invalidOption({ where: "limitRate", option: "calls", expected: "an integer ≥ 1", got: calls, fix });
  if (!(typeof perMs === "number" && perMs > 0 && perMs < Infinity))
    throw invalidOption({
      where: "limitRate",
      option: "perMs",
      expected: "a number of milliseconds > 0",
      got: perMs,
      fix,
    });
  checkChoice("limitRate", { atLimit }, ["wait", "refuse"]);
  checkFlag("limitRate", { tree });
  const limitedTools = tools === undefined ? undefined : new Set(tools);
  const gate = new RateGate({ calls, perMs });
  return defineMiddleware({
    name: "limitRate",
    required: true,
    inherited: tree,
    beforeTool: async ({ call }, runtime) => {
      if (limitedTools?.has(call.name) === false) return undefined;
      const passes = getPasses(runtime.signal, call.id);
      if (passes.some((pass) => pass.gate === gate)) return undefined;
      const slot = atLimit === "refuse" ? gate.tryAcquire(runtime.clock.now()) : undefined;
      if (typeof slot === "number")
        throw new ToolError("limit", `Too many calls of "${call.name}". Try again in ${slot} ms.`, {
          disposition: "repair",
          retryAfterMs: slot,
        });
      passes.push({ gate, tokens: 0, slot });
      if (slot === undefined) await acquireAll(passes, runtime);
      return undefined;
    },
  });
}

function getPasses(task: AbortSignal, call: string): Pass[] {
  const taskPasses = passesByTask.get(task) ?? new Map<string, Pass[]>();
  passesByTask.set(task, taskPasses);
  const passes = taskPasses.get(call) ?? [];
  taskPasses.set(call, passes);
  return passes;
}
