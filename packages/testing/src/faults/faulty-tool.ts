/** Tool with planned faults: throws, hangs, returns late, or returns a malformed result. */

import { type Tool, ToolError, type World } from "@statewright/core";
import { systemWorld } from "@statewright/core/adapter";
import { createFaultCounter, type FaultPlan, waitFor } from "./fault-plan.ts";

/** Faults of a tool. */
export interface ToolFaults extends FaultPlan {
  /** Thrown value. Default: an `unavailable` error, so that a retry may succeed. */
  readonly error?: unknown;
  /** Hangs instead of throwing, until the call is cancelled or times out. */
  readonly hang?: boolean;
  /** Delays the call by this many milliseconds instead of throwing. */
  readonly slowMs?: number;
  /** Executes the call and returns a malformed result, instead of throwing. */
  readonly malformed?: boolean;
  /** World of the delay; the real world by default. */
  readonly world?: World;
}

/** Returns the tool with planned faults. */
export function createFaultyTool<Faulty extends Tool<never, never>>(tool: Faulty, plan: ToolFaults): Faulty {
  const { hang = false, slowMs, malformed = false, world = systemWorld() } = plan;
  const { error = ToolError.unavailable("The tool is unavailable because of a planned fault of the test") } = plan;
  const shouldFail = createFaultCounter(plan);
  const { spec, reconcile } = tool;
  const wrapped: Tool<never, never> = {
    ...tool,
    spec,
    ...(reconcile && { reconcile: (state, runtime, call) => reconcile.call(tool, state, runtime, call) }),
    call: async (state, runtime, call) => {
      if (!shouldFail()) return tool.call(state, runtime, call);
      if (hang) return new Promise(() => undefined);
      if (slowMs !== undefined) {
        await waitFor(world, slowMs, (runtime as { readonly signal: AbortSignal }).signal);
        return tool.call(state, runtime, call);
      }
      if (!malformed) throw error;
      await tool.call(state, runtime, call);
      return { content: [{ type: "nonsense" }] };
    },
  };
  return wrapped as Faulty;
}
