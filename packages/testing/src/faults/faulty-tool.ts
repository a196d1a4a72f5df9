/** A tool that fails on purpose: it throws, hangs, takes its time, or returns what nobody can read. */
import { systemWorld, type Tool, ToolError, type World } from "@statewright/core";
import { type FaultPlan, pause, planned } from "./fault-plan.ts";

/** How a tool fails. */
export interface ToolFaults extends FaultPlan {
  /** What it throws. Default: unavailable, so that a retry may help. */
  readonly error?: unknown;
  /** Instead of throwing: never end, until the call is cancelled or its time is over. */
  readonly hang?: boolean;
  /** Instead of throwing: do its work so many milliseconds later. */
  readonly slowMs?: number;
  /** Instead of throwing: do its work, and return what is no result. */
  readonly malformed?: boolean;
  /** The world in which it is slow; the real one by default. */
  readonly world?: World;
}

/** The tool, failing by plan. */
export function faultyTool<Faulty extends Tool<never, never>>(tool: Faulty, plan: ToolFaults): Faulty {
  const { hang = false, slowMs, malformed = false, world = systemWorld() } = plan;
  const { error = ToolError.unavailable("The test made this tool unavailable") } = plan;
  const fails = planned(plan);
  const { spec, reconcile } = tool;
  const wrapped: Tool<never, never> = {
    ...tool,
    spec,
    ...(reconcile && { reconcile: (state, runtime, call) => reconcile.call(tool, state, runtime, call) }),
    call: async (state, runtime, call) => {
      if (!fails()) return tool.call(state, runtime, call);
      if (hang) return new Promise(() => undefined);
      if (slowMs !== undefined) {
        await pause(world, slowMs, (runtime as { readonly signal: AbortSignal }).signal);
        return tool.call(state, runtime, call);
      }
      if (!malformed) throw error;
      await tool.call(state, runtime, call);
      return { content: [{ type: "nonsense" }] };
    },
  };
  return wrapped as Faulty;
}
